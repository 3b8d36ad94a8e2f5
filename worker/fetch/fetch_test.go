package fetch

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
)

// fetching is a Fetch with its owner, and without a queue.
func fetching(t *testing.T, slots int) *Fetch {
	t.Helper()
	f := New(Config{Slots: slots, News: func(int) {}})
	t.Cleanup(f.Own())
	return f
}

// A slot counts once however often it is freed, and as many messages are requested as there are slots free.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fetching(t, 4)
		n, err := f.request(t.Context())
		if n != 4 || err != nil {
			t.Fatalf("%d are requested, %v", n, err)
		}
		var all []*Slot
		for range n {
			all = append(all, f.arrived())
		}
		if !f.Full() || f.Grab() != nil {
			t.Error("a slot is free")
		}
		all[0].Free()
		all[0].Free()
		if f.Busy() != 3 {
			t.Errorf("%d slots in use, want 3", f.Busy())
		}
		if taken := f.Grab(); taken == nil || f.Busy() != 4 {
			t.Errorf("%d slots in use, want 4", f.Busy())
		}
		all[1].Free()
		f.Shut(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if n, err := f.request(ctx); err == nil {
			t.Errorf("%d are requested of slots that are shut", n)
		}
	})
}

// A lane that was hinted at is taken from; while all slots are in use others are owed the hint.
func TestHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fetching(t, 1)
		here, there := queue.Lane{Priority: messages.PriorityNormal, Tenant: "here"}, queue.Lane{Priority: messages.PriorityNormal, Tenant: "there"}
		f.stored(here, 5)
		if err := f.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, _ := f.request(t.Context())
		shares := f.share(n)
		if len(shares) != 1 || shares[0].Lane != here {
			t.Fatalf("shares %+v", shares)
		}
		slot := f.arrived()
		f.do(func() { f.took(shares[0], 1, 5, true) })
		f.stored(here, 5) // it has been taken
		f.stored(there, 6)
		var owed []string
		f.do(func() {
			for l := range f.book.owed {
				owed = append(owed, l.Tenant)
			}
		})
		if working, _ := f.Lanes(); !slices.Equal(owed, []string{"there"}) || working != 1 {
			t.Errorf("owed %v, %d lanes with work; want there alone", owed, working)
		}
		slot.Free()
	})
}

// Whatever many goroutines want at once is done, and nothing is left when the owner has ended; after that nothing is done, and
// no caller waits.
func TestOwner(t *testing.T) {
	f := New(Config{Slots: 8, News: func(int) {}})
	f.Shut(true) // nothing owns it yet
	stop := f.Own()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 100 {
				if slot := f.Grab(); slot != nil {
					if trial, err := f.Enter(canceled(t), slot, false); err == nil {
						trial.End(true)
					}
					slot.Free()
				}
				f.Given(queue.Lane{Tenant: "a"}, 0)
			}
		})
	}
	all.Wait()
	stop()
	if f.Busy() != 0 || f.Suspects() != 0 {
		t.Errorf("%d slots in use, %d in quarantine", f.Busy(), f.Suspects())
	}
	if f.Grab() != nil {
		t.Error("a slot is given out although no goroutine owns the slots")
	}
}

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
