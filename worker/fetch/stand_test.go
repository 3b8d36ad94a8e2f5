package fetch

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
)

// A request stands at one lane, while most slots are free and nothing else is to do.
func TestOneRequestStands(t *testing.T) {
	f := fetching(t, 4)
	here, there := queue.Lane{Priority: messages.PriorityNormal, Tenant: "here"}, queue.Lane{Priority: messages.PriorityNormal, Tenant: "there"}
	may := func(l queue.Lane, since time.Time, end func()) (is bool) {
		f.do(func() { is = f.mayStand(l, since, end) })
		return is
	}
	leave := func() { f.do(func() { f.stood(here, nil) }) }
	ended := false
	if !may(here, time.Now(), func() { ended = true }) {
		t.Fatal("nothing else is to do")
	}
	if may(there, time.Now(), func() {}) {
		t.Error("a second one stands")
	}
	if f.Shut(true); !ended {
		t.Error("it stands although the slots are shut")
	}
	if leave(); may(here, time.Now(), func() {}) {
		t.Error("one stands although the slots are shut")
	}
	f.Shut(false)
	if may(here, time.Now().Add(-2*standIdle), func() {}) {
		t.Error("one stands at a lane that has been empty for long")
	}
	f.do(func() { f.book.order.Grant(nil, map[string]bool{"here": true}) })
	if may(here, time.Now(), func() {}) {
		t.Error("one stands at the lane of a tenant that is paused")
	}
	f.do(func() { f.book.order.Grant(nil, nil) })
	busy := []*Slot{f.Grab(), f.Grab()}
	if may(here, time.Now(), func() {}) {
		t.Error("one stands although half of the slots are in use")
	}
	busy[0].Free()
	f.spilled(there)
	if may(here, time.Now(), func() {}) {
		t.Error("one stands although another lane has work")
	}
	busy[1].Free()
	f.do(func() {
		if f.slots.requested != 0 {
			t.Errorf("%d slots are kept for nothing", f.slots.requested)
		}
	})
}

// A hint of what the standing request brings is not followed, and one of anything else is.
func TestStandingRequestAnswersHints(t *testing.T) {
	lane := queue.Lane{Priority: messages.PriorityNormal, Tenant: "here"}
	for name, tc := range map[string]struct {
		hint    uint64
		brought *taskqueue.Delivery
		ready   bool
	}{
		"of what it brings": {7, &taskqueue.Delivery{Seq: 7}, false},
		"of what was taken": {5, nil, false},
		"of the next one":   {8, &taskqueue.Delivery{Seq: 7}, true},
		"of what is lost":   {7, nil, true},
		"none, but more":    {0, &taskqueue.Delivery{Seq: 7, More: true}, true},
	} {
		f := fetching(t, 4)
		f.do(func() {
			f.book.newest[lane] = 6
			f.mayStand(lane, time.Now(), func() {})
		})
		if tc.hint > 0 {
			f.stored(lane, tc.hint)
		}
		f.do(func() {
			if f.book.order.Ready() {
				t.Errorf("%s: it is followed while the request stands", name)
			}
		})
		if tc.brought != nil {
			defer f.arrived().Free()
		}
		f.do(func() {
			f.stood(lane, tc.brought)
			if f.book.order.Ready() != tc.ready || f.slots.requested != 0 {
				t.Errorf("%s: ready %t, want %t; %d requested", name, !tc.ready, tc.ready, f.slots.requested)
			}
		})
	}
}
