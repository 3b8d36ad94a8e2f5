package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/worker/circuit"
)

// do asks Redis once, within the timeout, or returns ErrDown at once. It counts and judges the outcome.
func (s *ShortTerm) do(ctx context.Context, operation func(context.Context) error) error {
	pass, ok := s.circuit.Enter()
	if !ok {
		return ErrDown
	}
	return s.judge(ctx, pass, s.try(ctx, operation))
}

// Reach asks Redis whether it answers, as often as it takes to call it down, and returns why it does not. Call it at a start:
// without it a Redis that is away shows with the first runs.
func (s *ShortTerm) Reach(ctx context.Context) error {
	for {
		err := s.do(ctx, s.ask)
		if err == nil || ctx.Err() != nil || !s.circuit.IsClosed() {
			return err
		}
	}
}

// ask reads a key that nothing has. A PING is not enough: a node of a cluster answers that while the cluster serves no key.
func (s *ShortTerm) ask(ctx context.Context) error {
	return s.rdb.HMGet(ctx, s.config.Prefix+":{_._}:probe", fieldSeq).Err()
}

func (s *ShortTerm) try(ctx context.Context, operation func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.Timeout, fmt.Errorf("no answer within %s", s.config.Timeout))
	defer cancel()
	err := operation(ctx)
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// judge tells the circuit how an operation went. A caller that gave up says nothing about Redis.
func (s *ShortTerm) judge(caller context.Context, pass circuit.Pass, err error) error {
	switch {
	case err == nil || errors.Is(err, redis.Nil):
		s.closeCircuit(pass)
	case caller.Err() != nil:
		s.circuit.Withdraw(pass)
		s.errors.Add(1)
	case isAboutValue(err):
		s.errors.Add(1)
		s.closeCircuit(pass)
	default:
		s.errors.Add(1)
		if s.circuit.Fail(pass, circuit.Failure{}) {
			s.config.Log.WarnContext(caller, "short-term memory is down", "err", err)
			s.signal() // Run watches it from now on
		}
	}
	return err
}

func (s *ShortTerm) closeCircuit(pass circuit.Pass) {
	if s.circuit.Succeed(pass) {
		s.config.Log.Info("short-term memory is up again")
	}
}

// isAboutValue reports whether the error says something about one value and nothing about Redis as a whole.
func isAboutValue(err error) bool {
	return errors.Is(err, errBadValue) || redis.HasErrorPrefix(err, "WRONGTYPE")
}
