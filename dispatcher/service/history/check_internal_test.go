package history

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// A few runs are checked at once. Another one waits for a moment, and is refused if none of them ends.
func TestChecksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{})
		var leave func()
		for range maxChecks {
			var err error
			if leave, err = h.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if _, err := h.enter(t.Context()); !errors.Is(err, control.ErrCheckBusy) || time.Since(began) != checkWait {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		idled := false
		idle := func(wait func(stop <-chan struct{})) bool { idled = true; wait(nil); return true }
		if _, err := h.enter(request.WithIdler(t.Context(), idle)); !errors.Is(err, control.ErrCheckBusy) || !idled {
			t.Errorf("one that waits keeps others waiting: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.enter(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who has gone: %v", err)
		}
		time.AfterFunc(checkWait/2, leave)
		if _, err := h.enter(t.Context()); err != nil {
			t.Errorf("one has ended: %v", err)
		}
	})
}

// A check of a log without an end stops when its time is over, and says that the log is too long; or when its caller has gone.
func TestChecksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const planning = 2 * time.Second // of an entry; the time for a check is no multiple
		planned := 0
		h := New(Config{Check: func(_ context.Context, log iter.Seq2[record.Entry, error]) (control.RunCheck, error) {
			for _, err := range log {
				if err != nil {
					return control.RunCheck{}, err
				}
				planned++
				<-time.After(planning)
			}
			return control.RunCheck{}, nil
		}})
		endless := func(context.Context) iter.Seq2[record.Entry, error] {
			return func(yield func(record.Entry, error) bool) {
				for yield(record.Entry{}, nil) {
				}
			}
		}
		began := time.Now()
		if _, err := h.checked(t.Context(), endless); !errors.Is(err, control.ErrCheckLong) || time.Since(began) != checkTime.Truncate(planning)+planning {
			t.Errorf("%d entries in %v: %v", planned, time.Since(began), err)
		}
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(planning/2, leave)
		planned = 0
		if _, err := h.checked(gone, endless); !errors.Is(err, context.Canceled) || planned != 1 {
			t.Errorf("%d entries for a caller who has gone: %v", planned, err)
		}
	})
}

// A check that is cut off within an entry says so, and not that the log cannot be folded.
func TestAnEntryThatIsLongToPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Check: func(ctx context.Context, log iter.Seq2[record.Entry, error]) (control.RunCheck, error) {
			for range log {
				<-ctx.Done()
			}
			return control.RunCheck{}, context.Cause(ctx)
		}})
		began := time.Now()
		_, err := h.checked(t.Context(), func(context.Context) iter.Seq2[record.Entry, error] {
			return func(yield func(record.Entry, error) bool) { yield(record.Entry{}, nil) }
		})
		if !errors.Is(err, control.ErrCheckLong) || time.Since(began) != checkTime {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
