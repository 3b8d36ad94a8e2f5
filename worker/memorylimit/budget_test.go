package memorylimit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/worker/memorylimit"
)

const mib = 1 << 20

// until waits for so many runs that wait.
func until(t *testing.T, b *memorylimit.Budget, waiting int) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for b.Stats().Waiting != waiting {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%+v; want %d that wait", b.Stats(), waiting)
		}
	}
}

func hold(t *testing.T, s *memorylimit.Share, bytes int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Hold(ctx, bytes); err != nil {
		t.Errorf("hold %d: %v", bytes, err)
	}
}

// Runs that all hold some and all want more end one after the other, and never hold more than the limit together.
func TestRunsThatHoldSomeAndWantMoreAllEnd(t *testing.T) {
	t.Parallel()
	b := memorylimit.New(256 * mib)
	var most atomic.Int64
	var wg, some sync.WaitGroup
	some.Add(50)
	for i := range 50 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			s := b.Open("run", mib)
			defer s.Close()
			hold(t, s, 3*mib)
			some.Done()
			some.Wait() // until all hold some
			for held := int64(4 * mib); held <= 64*mib; held += mib + r.Int64N(16*mib) {
				hold(t, s, held)
				for used := b.Stats().Used; ; {
					if before := most.Load(); used <= before || most.CompareAndSwap(before, used) {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	if got := b.Stats(); got.Used != 0 || got.Waiting != 0 || got.Waits == 0 {
		t.Errorf("%+v", got)
	}
	if most.Load() > 256*mib {
		t.Errorf("%d MiB were held", most.Load()/mib)
	}
}

func TestMoreThanAShareIsRefused(t *testing.T) {
	t.Parallel()
	b := memorylimit.New(256 * mib)
	s := b.Open("run", 0)
	defer s.Close()
	hold(t, s, 64*mib)
	var exceeded *memorylimit.ExceededError
	if err := s.Hold(t.Context(), 64*mib+1); !errors.As(err, &exceeded) || exceeded.Share != 64*mib || exceeded.Bytes != 64*mib+1 {
		t.Errorf("%v", err)
	}
	if got := b.Stats().Used; got != 64*mib {
		t.Errorf("it holds %d", got)
	}
}

// A wait that is given up leaves nothing behind, and those behind it continue.
func TestAWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := memorylimit.New(256 * mib)
	var held []*memorylimit.Share
	for range 4 { // three in what is for all, the fourth as the senior
		s := b.Open("run", 0)
		hold(t, s, 64*mib)
		held = append(held, s)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	first, second := b.Open("first", 0), b.Open("second", 0)
	defer first.Close()
	gave, got := make(chan error), make(chan error)
	go func() { gave <- first.Hold(ctx, 64*mib) }()
	until(t, b, 1)
	go func() { got <- second.Hold(t.Context(), 32*mib) }()
	until(t, b, 2)
	if got := b.Waiting(9); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("%q wait", got)
	}
	if got := b.Waiting(1); !slices.Equal(got, []string{"first"}) {
		t.Errorf("%q wait first", got)
	}
	why := errors.New("enough")
	cancel(why)
	if err := <-gave; !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	held[0].Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
	second.Close()
	for _, s := range held[1:] {
		s.Close()
	}
	if got := b.Stats(); got.Used != 0 || got.Waiting != 0 || got.Waits != 3 {
		t.Errorf("%+v", got)
	}
}

// Those that look for work are told when there is room again.
func TestRoom(t *testing.T) {
	t.Parallel()
	b := memorylimit.New(256 * mib)
	if n := b.Room(64 * mib); n != 3 {
		t.Errorf("room for %d", n)
	}
	s := b.Open("run", 200*mib) // what a run brings is counted, whether there is room or not
	if n := b.Room(64 * mib); n != 0 {
		t.Errorf("room for %d", n)
	}
	select {
	case <-b.Roomy():
		t.Error("there is no room")
	default:
	}
	s.Close()
	select {
	case <-b.Roomy():
	default:
		t.Error("no signal")
	}
}

// Without a budget nothing is counted.
func TestNoBudget(t *testing.T) {
	t.Parallel()
	var b *memorylimit.Budget
	s := b.Open("run", 1)
	hold(t, s, 1<<60)
	if b.Stats() != (memorylimit.Stats{}) || b.Roomy() != nil || b.Waiting(1) != nil {
		t.Error("something is counted")
	}
	s.Close()
}
