package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The oldest goes first, whatever the order of arrival; none is lost, and no more than allowed are inside.
func TestCommitLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns commitLimiter
		for range atOnce {
			if err := turns.enter(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		var mu sync.Mutex
		var order []int
		for _, age := range []int{3, 1, 4, 0, 2} {
			go func() {
				if err := turns.enter(t.Context(), begun.Add(time.Duration(age))); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, age)
				mu.Unlock()
			}()
		}
		synctest.Wait()
		if len(order) > 0 {
			t.Fatalf("%v are inside beyond %d", order, atOnce)
		}
		for range 5 {
			turns.leave()
			synctest.Wait()
		}
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(order, want) {
			t.Errorf("in order %v, want %v", order, want)
		}
		for range atOnce {
			turns.leave()
		}
		if turns.inside != 0 || len(turns.waiting) != 0 {
			t.Errorf("%d are inside and %d wait", turns.inside, len(turns.waiting))
		}
	})
}

// A waiter that gives up, even at the moment of its turn, does not take the turn of another.
func TestCommitLimiterGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns commitLimiter
		for range atOnce {
			_ = turns.enter(t.Context(), time.Now())
		}
		why := errors.New("enough")
		for i := range 100 {
			ctx, cancel := context.WithCancelCause(t.Context())
			got := make(chan error, 1)
			go func() { got <- turns.enter(ctx, time.Now()) }()
			synctest.Wait()
			if i%2 == 0 {
				go turns.leave()
				cancel(why)
				if <-got == nil {
					turns.leave()
				}
				synctest.Wait()
				_ = turns.enter(t.Context(), time.Now())
				continue
			}
			cancel(why)
			if err := <-got; !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
		}
		if turns.inside != atOnce || len(turns.waiting) != 0 {
			t.Errorf("%d are inside and %d wait", turns.inside, len(turns.waiting))
		}
	})
}
