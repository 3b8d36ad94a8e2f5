package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/policy"
)

// hydrate rebuilds the state after a claim of a run that others have worked: from the cache if it is of this log,
// else from the log alone. Events that the others may not have got stored are published again.
func (x *journal) hydrate(ctx context.Context) error {
	through, _ := x.own.position()
	s := x.recall(ctx)
	if s != nil {
		ok, err := x.replay(ctx, s, s.Seq-1, through)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrNoMemory), errors.Is(err, ErrShutdown): // the log takes as much
			return err
		case err != nil || !ok: // whatever is wrong with the cache, the log decides
			s = nil
		}
	}
	if s == nil {
		s = &agent.State{}
		if _, err := x.replay(ctx, s, 0, through); err != nil {
			return err
		}
	}
	if s.Seq != through || s.Head.Claim != x.claimID {
		return fmt.Errorf("read log: it ends at %d, not at the claim %d", s.Seq, through)
	}
	x.state = s
	return runlog.Replay(ctx, x.log, x.run, record.Entry{Seq: s.Seq, Head: s.Head}, x.out)
}

// replay folds the entries after a sequence into s. When s is from the cache the first of them must be the one that s
// reflects; false: it is not.
func (x *journal) replay(ctx context.Context, s *agent.State, after, through uint64) (bool, error) {
	first, n := s.Seq != 0, 0
	for e, err := range x.log.Read(ctx, x.run, after, through) {
		switch {
		case err != nil:
			return false, fmt.Errorf("read log: %w", err)
		case first && (e.Seq != s.Seq || e.Head.ID != s.Head.ID):
			return false, nil
		case first:
			first = false
			continue
		case e.Seq > through:
			return true, nil
		}
		if err := s.Apply(e); err != nil {
			return false, err
		}
		if n++; n%countedEvery == 0 {
			if err := x.footprint.folded(ctx, s); err != nil {
				return false, err
			}
		}
	}
	return true, x.footprint.folded(ctx, s)
}

// countedEvery is after how many entries the memory of a state is counted again while it is read.
const countedEvery = 16

func (x *journal) recall(ctx context.Context) *agent.State {
	seq, id, data, ok := x.cfg.Cache.Load(ctx, x.run)
	if !ok {
		return nil
	}
	s, err := agent.Decode(data)
	if err != nil || s.Seq != seq || s.Head.ID != id || seq == 0 || !s.Of(x.run) {
		x.cfg.Log.WarnContext(ctx, "cached state ignored", "task_id", x.run.Run, "tenant", x.run.Tenant, "err", err)
		return nil
	}
	return s
}

const (
	// A run of quick steps would write little else than its state. A crash costs the next owner the few entries more to
	// fold.
	rememberEvery = 100 * time.Millisecond
	// The whole state is encoded each time, so to cache it at each step would take time with the square of the steps. It is cached when an
	// eighth of the steps are new, and the next owner has at most as much of the log to fold.
	rememberPart = 8
	// Into a model call: a worker that hears from many models at once has other things to do before the next call of each.
	rememberAfter = time.Second
	// A cache keeps no larger state, and to encode one takes a multiple of its memory.
	maxRemembered = 1 << 20
)

// rememberMeanwhile caches the state, from the second step on, while the model is waited for; that of a quick call once stop is called, beside
// the append that follows, unless another was cached a moment ago.
func (x *journal) rememberMeanwhile() (stop func()) {
	if x.state.Step < 2 || (x.state.Step-x.rememberedStep)*rememberPart < x.state.Step || !x.cfg.Cache.Wants() {
		return func() {}
	}
	x.remembering.Wait()
	done, encode := make(chan struct{}), x.remember(x.rules.of(x.state.Agent)) // asked for here: the timer has a goroutine of its own
	timer := time.AfterFunc(rememberAfter, func() {
		defer close(done)
		encode()
	})
	last := x.remembered
	return func() {
		switch {
		case !timer.Stop():
			<-done
		case time.Since(last) < rememberEvery:
			return
		default:
			x.remembering.Go(encode)
		}
		x.remembered, x.rememberedStep = time.Now(), x.state.Step
	}
}

// holds reports whether the rules let a memory hold the whole of what a run leaves there.
func holds(rules *policy.Rules, data []byte) bool { return keeps(rules)(string(data)) }

// keeps reports whether the rules let a memory hold the whole of a text.
func keeps(rules *policy.Rules) func(text string) bool {
	return func(text string) bool {
		kept, ok := rules.Memory(text)
		return ok && kept == text
	}
}

// remember returns a function that hands the state to the cache, if the rules let a memory hold the whole of it. Else the next owner folds the
// log. Until it has returned, the state must not be advanced itself; a clone may.
func (x *journal) remember(rules *policy.Rules) (encode func()) {
	s := x.state
	return func() {
		if !x.cfg.Cache.Wants() || s.Bytes() > maxRemembered {
			return
		}
		if data, err := s.Encode(); err == nil && holds(rules, data) {
			x.cfg.Cache.Save(x.run, s.Seq, s.Head.ID, data)
		}
	}
}
