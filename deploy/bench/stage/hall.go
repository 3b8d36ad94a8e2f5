package stage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages/bus"
)

// Hall is a stage whose dispatcher is a process of its own, with its HTTP API.
type Hall struct {
	*Stage

	Dispatcher *measure.Process
	URL        string // of its HTTP API
	Index      string // file of its run index, or settings.IndexNone
	retain     string // for how long it keeps runs; empty: the default
}

// OpenHall starts fresh servers and a dispatcher with its run index. They write CPU profiles, to file.servers and file.dispatcher, if a file
// is given. Close ends all.
func (e Env) OpenHall(ctx context.Context, dir, profile string) (*Hall, error) {
	return e.openHall(ctx, dir, profile, true, "")
}

// OpenHallThatForgets starts fresh servers and a dispatcher that purges runs so long after their end.
func (e Env) OpenHallThatForgets(ctx context.Context, dir string, retain time.Duration) (*Hall, error) {
	return e.openHall(ctx, dir, "", true, retain.String())
}

// OpenHallWithoutIndex starts fresh servers and a dispatcher that keeps no run index.
func (e Env) OpenHallWithoutIndex(ctx context.Context, dir string) (*Hall, error) {
	return e.openHall(ctx, dir, "", false, "")
}

func (e Env) openHall(ctx context.Context, dir, profile string, index bool, retain string) (_ *Hall, err error) {
	h := &Hall{Stage: &Stage{}, retain: retain}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := h.serve(ctx, e, dir, measure.Suffixed(profile, ".servers")); err != nil {
		return nil, err
	}
	if h.Index = settings.IndexNone; index {
		h.Index = filepath.Join(h.Dir, "index.db")
	}
	if err := h.startDispatcher(ctx, measure.Suffixed(profile, ".dispatcher")); err != nil {
		return nil, err
	}
	for _, a := range Agents() {
		if _, err = h.Client.Agents().Apply(ctx, a, "", nil); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// startDispatcher starts the dispatcher, and returns when it serves.
func (h *Hall) startDispatcher(ctx context.Context, profile string) (err error) {
	var ready DispatcherReady
	h.Dispatcher, err = measure.Spawn(ctx, RoleDispatcher, DispatcherConfig{h.Ready.NATSURL, h.Index, profile, h.retain}, &ready)
	if err != nil {
		return err
	}
	h.URL = "http://" + ready.Addr
	h.Client, err = dispatcher.New(ctx, h.Conn)
	return err
}

// Restart stops dispatcher and servers, and starts them again on what they have stored. It returns how long each took to be ready.
// Workers must have been stopped.
func (h *Hall) Restart(ctx context.Context, e Env) (servers, dispatcher time.Duration, err error) {
	if err := h.Dispatcher.Stop(); err != nil {
		return 0, 0, err
	}
	if servers, err = h.RestartServers(ctx, e); err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	err = h.startDispatcher(ctx, "")
	return servers, time.Since(begun), err
}

// Close ends what was started, and removes its files.
func (h *Hall) Close() error {
	var errs []error
	if h.Dispatcher != nil {
		errs = append(errs, h.Dispatcher.Stop())
	}
	return errors.Join(append(errs, h.Stage.Close())...)
}

// Stored is how many messages of the logs of runs are stored.
func (s *Stage) Stored(ctx context.Context) (uint64, error) {
	js, err := jetstream.New(s.Conn)
	if err != nil {
		return 0, fmt.Errorf("count the entries of logs: %w", err)
	}
	stream, err := js.Stream(ctx, bus.StreamRuns)
	if err != nil {
		return 0, fmt.Errorf("count the entries of logs: %w", err)
	}
	return stream.CachedInfo().State.Msgs, nil
}

// LastEvent is the position of the newest event.
func (s *Stage) LastEvent(ctx context.Context) (uint64, error) {
	js, err := jetstream.New(s.Conn)
	if err != nil {
		return 0, fmt.Errorf("find the newest event: %w", err)
	}
	stream, err := js.Stream(ctx, bus.StreamEvents)
	if err != nil {
		return 0, fmt.Errorf("find the newest event: %w", err)
	}
	return stream.CachedInfo().State.LastSeq, nil
}
