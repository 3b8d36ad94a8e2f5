package stage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
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
	h := &Hall{Stage: &Stage{Env: e}, retain: retain}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := h.serve(ctx, e, dir, measure.Suffixed(profile, ".servers")); err != nil {
		return nil, err
	}
	if err := e.setup(ctx, h.Conn); err != nil { // the dispatcher keeps the streams that there are
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
	h.Dispatcher, err = measure.Spawn(ctx, RoleDispatcher, DispatcherConfig{h.Ready.NATSURL, h.Env.Replicas, h.Index, profile, h.retain}, &ready)
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
	state, err := stateOf(ctx, s.Conn, bus.StreamRuns)
	if err != nil {
		return 0, fmt.Errorf("count the entries of logs: %w", err)
	}
	return state.Msgs, nil
}

// LastEvent is the position of the newest event: a sum, if there are several streams.
func (s *Stage) LastEvent(ctx context.Context) (uint64, error) {
	state, err := stateOf(ctx, s.Conn, bus.StreamEvents)
	if err != nil {
		return 0, fmt.Errorf("find the newest event: %w", err)
	}
	return state.LastSeq, nil
}

// stateOf is the sum over the streams of one kind.
func stateOf(ctx context.Context, nc *nats.Conn, kind string) (sum jetstream.StreamState, err error) {
	streams, err := streamsOf(ctx, nc, kind)
	for _, s := range streams {
		state := s.CachedInfo().State
		sum.Msgs, sum.LastSeq = sum.Msgs+state.Msgs, sum.LastSeq+state.LastSeq
	}
	return sum, err
}

// streamsOf are those of one kind: several, if they are divided.
func streamsOf(ctx context.Context, nc *nats.Conn, kind string) ([]jetstream.Stream, error) {
	division, err := bus.FindDivision(ctx, nc)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	streams := make([]jetstream.Stream, division[kind])
	for i := range streams {
		name := bus.PartitionName(kind, i, len(streams))
		if streams[i], err = js.Stream(ctx, name); err != nil {
			return nil, fmt.Errorf("look at stream %s: %w", name, err)
		}
	}
	return streams, nil
}
