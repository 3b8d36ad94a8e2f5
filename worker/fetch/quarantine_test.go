package fetch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/worker/runner"
)

// suspects are runs that enter a quarantine, and what came of it.
type suspects struct {
	t *testing.T
	f *Fetch

	mu      sync.Mutex
	entered map[string]*runner.Trial
	errs    map[string]error
	told    []int
}

func newSuspects(t *testing.T, limit int) *suspects {
	t.Helper()
	s := &suspects{t: t, entered: map[string]*runner.Trial{}, errs: map[string]error{}}
	s.f = New(Config{Slots: limit, News: func(trials int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, trials)
	}})
	t.Cleanup(s.f.Own())
	return s
}

// enter lets a run wait for its trial, in the background.
func (s *suspects) enter(ctx context.Context, name string, prime bool) {
	sl := s.f.arrived()
	go func() {
		trial, err := s.f.Enter(ctx, sl, prime)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.entered[name], s.errs[name] = trial, err
	}()
	synctest.Wait()
}

func (s *suspects) end(name string, progress bool) {
	s.mu.Lock()
	trial := s.entered[name]
	s.mu.Unlock()
	trial.End(progress)
	synctest.Wait()
}

// on checks who is on trial or was.
func (s *suspects) on(names ...string) {
	s.t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range names {
		if s.entered[n] == nil {
			s.t.Errorf("%s is not tried: error %v", n, s.errs[n])
		}
	}
	n := 0
	for _, trial := range s.entered {
		if trial != nil {
			n++
		}
	}
	if n != len(names) {
		s.t.Errorf("%d were tried, want %v", n, names)
	}
}

func TestQuarantineTriesMoreWhenRunsMakeProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSuspects(t, 8)
		for _, n := range []string{"a", "b", "c", "d"} {
			s.enter(t.Context(), n, false)
		}
		s.on("a")
		s.end("a", true)
		s.on("a", "b", "c")
		s.end("b", false)
		s.on("a", "b", "c", "d")
		if !s.entered["a"].Alone || !s.entered["b"].Alone || s.entered["c"].Alone || s.entered["d"].Alone {
			t.Errorf("alone: %v", s.entered)
		}
		s.end("c", true)
		s.end("d", true)
		if n := s.f.Busy(); n != 4 || s.f.Suspects() != 0 || len(s.told) != 2 {
			t.Errorf("%d slots in use, %d in quarantine, told %v", n, s.f.Suspects(), s.told)
		}
	})
}

// What was said of trials that have ended does not speak for a prime suspect that is tried alone after them.
func TestQuarantineTellsOfAPrimeSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSuspects(t, 8)
		for _, n := range []string{"a", "b", "c"} {
			s.enter(t.Context(), n, false)
		}
		s.end("a", true)
		s.enter(t.Context(), "prime", true)
		s.on("a", "b", "c")
		s.end("b", true)
		s.end("c", true)
		s.on("a", "b", "c", "prime")
		if !s.entered["prime"].Alone || !slices.Equal(s.told, []int{2, 1}) {
			t.Errorf("alone: %t, told %v, want 2 and then 1", s.entered["prime"].Alone, s.told)
		}
		s.end("prime", true)
	})
}

func TestQuarantineTriesPrimeSuspectsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSuspects(t, 8)
		s.enter(t.Context(), "a", false)
		s.enter(t.Context(), "b", false)
		s.enter(t.Context(), "prime", true)
		s.end("a", true) // there would be room for two
		s.on("a", "prime")
		if !s.entered["prime"].Alone {
			t.Error("the prime suspect is not alone")
		}
		s.end("prime", true)
		s.on("a", "prime", "b")
		s.end("b", true)
	})
}

func TestQuarantineWaitsNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSuspects(t, 8)
		s.enter(t.Context(), "slow", true)
		s.enter(t.Context(), "b", false)
		s.on("slow")
		time.Sleep(trialTime + time.Second)
		s.on("slow", "b")
		if s.entered["b"].Alone || !slices.Equal(s.told, []int{1, 2}) {
			t.Errorf("b is alone: %t, told %v", s.entered["b"].Alone, s.told)
		}
		s.end("slow", true)
		s.end("slow", true) // harmless
		s.end("b", true)
		if n := s.f.Busy(); n != 2 || s.f.Suspects() != 0 {
			t.Errorf("%d slots in use, %d in quarantine", n, s.f.Suspects())
		}
	})
}

func TestQuarantineTurnsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSuspects(t, 2)
		ctx, cancel := context.WithCancelCause(t.Context())
		s.enter(t.Context(), "a", false)
		s.enter(ctx, "b", false)
		s.enter(t.Context(), "c", false)
		s.enter(t.Context(), "d", false)
		if !errors.Is(s.errs["d"], ErrQuarantineFull) {
			t.Errorf("one too many: %v", s.errs["d"])
		}
		gone := errors.New("gone")
		cancel(gone)
		synctest.Wait()
		if !errors.Is(s.errs["b"], gone) {
			t.Errorf("its context ended: %v", s.errs["b"])
		}
		s.f.Reopen()
		synctest.Wait()
		if trial, ok := s.entered["c"]; !ok || trial != nil || s.errs["c"] != nil {
			t.Errorf("new evidence: %v, %v", trial, s.errs["c"])
		}
		s.enter(t.Context(), "e", false)
		s.f.Close()
		synctest.Wait()
		if !errors.Is(s.errs["e"], runner.ErrShutdown) {
			t.Errorf("a stop: %v", s.errs["e"])
		}
		s.enter(t.Context(), "f", false)
		if !errors.Is(s.errs["f"], runner.ErrShutdown) {
			t.Errorf("after a stop: %v", s.errs["f"])
		}
		s.end("a", true)
	})
}
