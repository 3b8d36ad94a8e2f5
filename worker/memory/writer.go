package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/worker/circuit"
)

const (
	maxBatch      = 64
	maxBatchBytes = 1 << 20 // goes through within the timeout on any network that is fit for a cache
	maxAttempts   = 5       // the circuit opens earlier: an outage alone drops nothing
	retryPause    = 50 * time.Millisecond
)

// Run writes what Save and Delete have queued until ctx ends, then what still waits, for at most Config.Flush, and
// drops the rest. While Redis is down it asks once per Config.Probe whether it is back. It returns nil; a second Run is an
// error. Changes queued after it has ended are dropped.
func (s *ShortTerm) Run(ctx context.Context) error {
	if !s.isRun.CompareAndSwap(false, true) {
		return errors.New("run short-term memory: it has been run already")
	}
	for ctx.Err() == nil {
		s.turn(ctx)
	}
	s.flush(context.WithoutCancel(ctx))
	return nil
}

// turn writes one batch, or waits for a reason to.
func (s *ShortTerm) turn(ctx context.Context) {
	if !s.circuit.IsClosed() {
		s.wait(ctx, s.circuit.Wait())
		s.probe(ctx)
		return
	}
	batch := s.pending.take(maxBatch, maxBatchBytes)
	if len(batch) == 0 {
		select {
		case <-ctx.Done():
		case <-s.wake:
		}
		return
	}
	if !s.write(ctx, batch) {
		s.wait(ctx, retryPause)
	}
}

func (*ShortTerm) wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (s *ShortTerm) probe(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	// Only the circuit breaker needs the outcome.
	_ = s.do(ctx, s.ask)
}

// flush ends the writing. A Redis that is down is not waited for.
func (s *ShortTerm) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Flush)
	defer cancel()
	for ctx.Err() == nil && s.circuit.IsClosed() {
		batch := s.pending.take(maxBatch, maxBatchBytes)
		if len(batch) == 0 {
			break
		}
		if !s.write(ctx, batch) {
			s.wait(ctx, retryPause)
		}
	}
	s.drop(s.pending.close(), nil)
}

// write sends a batch and reports whether all of it arrived. The end of ctx does not interrupt it: what was sent is
// better known to be written.
func (s *ShortTerm) write(ctx context.Context, batch []*change) bool {
	var failure error
	err := s.try(context.WithoutCancel(ctx), func(ctx context.Context) error {
		failure = s.send(ctx, batch)
		return failure
	})
	_ = s.judge(context.WithoutCancel(ctx), circuit.Pass{}, err)
	return failure == nil
}

// send writes the changes of a batch and settles each of them. It returns the worst that happened.
func (s *ShortTerm) send(ctx context.Context, batch []*change) error {
	var commands []command
	failed := map[*change]error{}
	for _, c := range batch {
		own, err := s.commands(ctx, c)
		if err != nil { // the change as a whole is tried again, or dropped
			failed[c] = err
		}
		commands = append(commands, own...)
	}
	var worst error
	for i, err := range runScripts(ctx, s.rdb, commands) {
		c := commands[i].change
		switch {
		case err != nil && failed[c] == nil:
			failed[c] = err
			if worst == nil || isAboutValue(worst) {
				worst = err
			}
		case err == nil && commands[i].wrote():
			s.saves.Add(1)
		}
	}
	s.settle(batch, failed)
	return worst
}

func (s *ShortTerm) settle(batch []*change, failed map[*change]error) {
	dropped := 0
	var why error
	for _, c := range batch {
		err := failed[c]
		c.attempts++
		switch {
		case err == nil:
			s.pending.done(c)
		case isAboutValue(err) || c.attempts >= maxAttempts:
			s.pending.done(c)
			dropped, why = dropped+1, err
		default:
			s.pending.putBack(c)
		}
	}
	s.drop(dropped, why)
}

func (s *ShortTerm) drop(n int, why error) {
	if n == 0 {
		return
	}
	s.dropped.Add(uint64(n))
	s.config.Log.Warn("short-term memory dropped changes", "count", n, "err", why)
}

// command is one script call of a change.
type command struct {
	change *change
	script *redis.Script
	keys   []string
	args   []any
	reply  *redis.Cmd
}

// wrote reports whether the command wrote a snapshot.
func (c command) wrote() bool {
	n, err := c.reply.Int()
	return c.script == saveScript && err == nil && n == 1
}

// commands are those of a change. With an error its snapshot is not among them, for it cannot be sealed.
func (s *ShortTerm) commands(ctx context.Context, c *change) ([]command, error) {
	var out []command
	if c.remove {
		out = append(out, command{change: c, script: deleteScript, keys: []string{s.stateKey(c.run)}})
	}
	if c.save {
		place := s.statePlace(c.run, c.snapshot.Seq, c.snapshot.EntryID)
		data, err := s.config.Sealer.Seal(ctx, c.run.Tenant, c.snapshot.Data, place)
		if err != nil {
			return out, fmt.Errorf("seal a state: %w", err)
		}
		args := []any{sequence(c.snapshot.Seq), c.snapshot.EntryID, data, s.config.TTL.Milliseconds()}
		out = append(out, command{change: c, script: saveScript, keys: []string{s.stateKey(c.run)}, args: args})
	}
	return out, nil
}
