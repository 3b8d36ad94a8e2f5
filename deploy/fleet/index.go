package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/service/runindex"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/observability/index"
)

// Index is the run index of a dispatcher; nil when it keeps none.
func Index(ctx context.Context, s settings.RunIndex, b *bus.Bus, log *slog.Logger) (*index.Index, error) {
	if s.Index == "" || s.Index == settings.IndexNone {
		return nil, nil
	}
	cfg := index.Config{Bus: b, Where: s.Index, Retain: s.IndexRetain, Log: log}
	if s.Index != settings.IndexAuto {
		return index.New(cfg)
	}
	state, err := events.New(b).State(ctx)
	if err != nil {
		return nil, err
	}
	for _, dir := range folders() {
		// Of another fleet the file is another one.
		cfg.Where = filepath.Join(dir, "longshore", fmt.Sprintf("index-%x.db", state.Created.UnixNano()))
		var x *index.Index
		if x, err = index.New(cfg); err == nil {
			return x, nil
		}
	}
	log.WarnContext(ctx, "there is no place for a run index: lists read the events, and there are no statistics", "err", err)
	return nil, nil
}

// folders are those that a file may be in that can be made again.
func folders() []string {
	var dirs []string
	if dir, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, dir)
	}
	return append(dirs, os.TempDir())
}

// asked is what the service asks: a nil index is none.
func asked(x *index.Index) runindex.Index {
	if x == nil {
		return nil
	}
	return x
}

// keepIndex keeps an index until ctx ends.
func keepIndex(ctx context.Context, x *index.Index) error {
	if x == nil {
		return nil
	}
	return x.Run(ctx)
}

// closeIndex closes the connections of an index that is no longer in use.
func closeIndex(ctx context.Context, x *index.Index, log *slog.Logger) {
	if x == nil {
		return
	}
	if err := x.Close(); err != nil {
		log.WarnContext(ctx, "close the run index", "err", err)
	}
}

// indexMetrics show how an index is.
func indexMetrics(m *observability.Metrics, x *index.Index) error {
	if x == nil {
		return nil
	}
	err := m.Lag("index", func() (bus.Lag, bool) { return bus.Lag{Messages: int(x.Behind())}, true })
	if err != nil {
		return err
	}
	return m.Gauge("index_failing", "1 while the run index cannot be updated; the log says why.", func() float64 {
		if x.Failing() {
			return 1
		}
		return 0
	})
}
