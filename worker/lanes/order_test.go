package lanes_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/worker/lanes"
)

func lane(p messages.Priority, tenant string) queue.Lane {
	return queue.Lane{Priority: p, Tenant: tenant}
}

func normal(tenant string) queue.Lane { return lane(messages.PriorityNormal, tenant) }

// fleet is workers with an Order each, in front of one queue.
type fleet struct {
	queued map[queue.Lane]int
	orders []*lanes.Order
	took   []queue.Lane // in this order
}

func newFleet(workers int, queued map[queue.Lane]int) *fleet {
	f := &fleet{queued: queued}
	for range workers {
		o := lanes.New()
		f.orders = append(f.orders, o)
	}
	for l := range queued {
		f.mark(l)
	}
	return f
}

func (f *fleet) mark(l queue.Lane) {
	for _, o := range f.orders {
		o.Mark(l)
	}
}

// turn has a worker take n.
func (f *fleet) turn(worker, n int) {
	o := f.orders[worker%len(f.orders)]
	for _, s := range o.Share(n) {
		got := min(s.N, f.queued[s.Lane])
		f.queued[s.Lane] -= got
		for range got {
			f.took = append(f.took, s.Lane)
		}
		o.Took(s, got, f.queued[s.Lane] == 0)
	}
}

func (f *fleet) counts() map[queue.Lane]int {
	c := map[queue.Lane]int{}
	for _, l := range f.took {
		c[l]++
	}
	return c
}

func TestShares(t *testing.T) {
	high, low := lane(messages.PriorityHigh, "a"), lane(messages.PriorityLow, "a")
	const many = 1 << 20
	for name, tt := range map[string]struct {
		queued  map[queue.Lane]int
		weights map[string]int
		paused  map[string]bool
		turns   int
		want    map[queue.Lane]int
	}{
		"nothing":      {nil, nil, nil, 10, map[queue.Lane]int{}},
		"one":          {map[queue.Lane]int{normal("a"): many}, nil, nil, 10, map[queue.Lane]int{normal("a"): 10}},
		"equal":        {map[queue.Lane]int{normal("a"): many, normal("b"): many}, nil, nil, 1000, map[queue.Lane]int{normal("a"): 500, normal("b"): 500}},
		"3 to 1":       {map[queue.Lane]int{normal("a"): many, normal("b"): many}, map[string]int{"a": 3}, nil, 1000, map[queue.Lane]int{normal("a"): 750, normal("b"): 250}},
		"100 to 1":     {map[queue.Lane]int{normal("a"): many, normal("b"): many}, map[string]int{"a": 100}, nil, 1010, map[queue.Lane]int{normal("a"): 1000, normal("b"): 10}},
		"priorities":   {map[queue.Lane]int{high: many, normal("a"): many, low: many}, nil, nil, 2100, map[queue.Lane]int{high: 1600, normal("a"): 400, low: 100}},
		"low and high": {map[queue.Lane]int{high: many, low: many}, nil, nil, 1700, map[queue.Lane]int{high: 1600, low: 100}},
		"wake-ups":     {map[queue.Lane]int{queue.WakeLane(): 7, high: many}, nil, nil, 10, map[queue.Lane]int{queue.WakeLane(): 7, high: 3}},
		"wakes, starts": {
			map[queue.Lane]int{queue.WakeLane(): many, high: many, normal("a"): many, low: many},
			nil, nil, 8500,
			map[queue.Lane]int{queue.WakeLane(): 6400, high: 1600, normal("a"): 400, low: 100},
		},
		"paused":        {map[queue.Lane]int{normal("a"): many, normal("b"): many, low: many}, nil, map[string]bool{"a": true}, 10, map[queue.Lane]int{normal("b"): 10}},
		"all paused":    {map[queue.Lane]int{normal("a"): many}, nil, map[string]bool{"a": true}, 10, map[queue.Lane]int{}},
		"wake if pause": {map[queue.Lane]int{normal("a"): many, queue.WakeLane(): 2}, nil, map[string]bool{"a": true}, 10, map[queue.Lane]int{queue.WakeLane(): 2}},
	} {
		for _, batch := range []int{1, 7, 64} {
			t.Run(fmt.Sprint(name, " by ", batch), func(t *testing.T) {
				t.Parallel()
				queued := map[queue.Lane]int{}
				maps.Copy(queued, tt.queued)
				f := newFleet(1, queued)
				f.orders[0].Grant(tt.weights, tt.paused)
				for guard := 0; len(f.took) < tt.turns && guard < tt.turns; guard++ {
					f.turn(0, min(batch, tt.turns-len(f.took)))
				}
				for l, want := range tt.want { // a turn more or less at the end
					if got := f.counts()[l]; got < want-1 || got > want+1 {
						t.Errorf("%s got %d turns, want %d", l, got, want)
					}
				}
				if len(f.counts()) != len(tt.want) {
					t.Errorf("got %v, want %v", f.counts(), tt.want)
				}
			})
		}
	}
}

// A tenant with a backlog makes one with a single task wait for no more than one turn in each worker.
func TestSingleTaskBesideABacklog(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 3, 50} {
		f := newFleet(workers, map[queue.Lane]int{normal("a"): 100_000})
		for i := range 1000 {
			f.turn(i, 4)
		}
		for round := range 20 {
			f.queued[normal("b")]++
			f.mark(normal("b"))
			before := len(f.took)
			for i := 0; f.queued[normal("b")] > 0 && i < 100; i++ {
				f.turn(round+i, 1)
			}
			if waited := len(f.took) - before; waited > workers+1 || f.queued[normal("b")] > 0 {
				t.Errorf("%d workers: b was taken after %d turns", workers, waited)
			}
		}
	}
}

// An idle tenant does not save up turns.
func TestNoCreditForIdleness(t *testing.T) {
	t.Parallel()
	f := newFleet(1, map[queue.Lane]int{normal("a"): 10_000})
	for range 5000 {
		f.turn(0, 1)
	}
	f.queued[normal("b")] = 10_000
	f.mark(normal("b"))
	f.took = nil
	for range 100 {
		f.turn(0, 1)
	}
	if got := f.counts()[normal("b")]; got != 50 {
		t.Errorf("the one that came later got %d of 100 turns", got)
	}
}

// What a lane had not got is not counted against it, nor against its priority.
func TestEmptyHandedSharesAreFree(t *testing.T) {
	t.Parallel()
	o := lanes.New()
	o.Mark(normal("a"))
	o.Mark(normal("b"))
	for range 100 { // a's hints are wrong
		for _, s := range o.Share(2) {
			if s.Lane == normal("a") {
				o.Took(s, 0, false)
			} else {
				o.Took(s, s.N, false)
			}
		}
	}
	for _, s := range o.Share(2) {
		if s.Lane != normal("a") {
			t.Errorf("got %v, want what a has not had", s)
		}
	}
}

func TestDryUnlessMarkedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, l := range []queue.Lane{normal("a"), queue.WakeLane()} {
		o := lanes.New()
		o.Mark(l)
		s := o.Share(3)
		if diff := cmp.Diff(3, s[0].N); diff != "" || len(s) != 1 {
			t.Fatal(s)
		}
		o.Mark(l) // while the share is on its way
		o.Took(s[0], 1, true)
		if !o.Ready() || !o.Marked(l) {
			t.Errorf("%s: a mark was lost", l)
		}
		s = o.Share(3)
		o.Took(s[0], 0, true)
		if o.Ready() || o.Marked(l) || len(o.All()) != 0 || o.Share(3) != nil {
			t.Errorf("%s is dry and not empty", l)
		}
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	o := lanes.New()
	o.Grant(nil, map[string]bool{"a": true})
	o.Mark(normal("a"))
	if o.Ready() || !o.Marked(normal("a")) {
		t.Error("a paused tenant's lane is ready, or forgotten")
	}
	o.Grant(nil, nil)
	if s := o.Share(1); len(s) != 1 || s[0].Lane != normal("a") {
		t.Errorf("after the resume: %v", s)
	}
	o.Grant(nil, map[string]bool{"a": true})
	if o.Ready() {
		t.Error("paused again, and ready")
	}
}

// The same marks and takes give the same order.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	run := func() []queue.Lane {
		f := &fleet{queued: map[queue.Lane]int{}, orders: []*lanes.Order{lanes.New(), lanes.New()}}
		for i := range 200 {
			l := lane([]messages.Priority{messages.PriorityHigh, messages.PriorityNormal, messages.PriorityLow}[i%3], fmt.Sprint("t", i%17))
			f.queued[l] += i % 5
			f.mark(l)
			f.turn(i, 1+i%4)
		}
		return f.took
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Error(diff)
	}
}

// A tenant has the turns of one, in however many partitions its tasks are, and its partitions take these by turns.
func TestTurnsOfPartitions(t *testing.T) {
	queued := map[queue.Lane]int{normal("b").In(2): 1000}
	for i := range 4 {
		queued[normal("a").In(i)] = 1000
	}
	f := newFleet(1, queued)
	for range 100 {
		f.turn(0, 8)
	}
	want := map[queue.Lane]int{normal("b").In(2): 400}
	for i := range 4 {
		want[normal("a").In(i)] = 100
	}
	got := f.counts()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, l := range []queue.Lane{normal("a").In(0), normal("a").In(1), normal("a").In(2)} {
		f.queued[l] = 0
	}
	f.took = nil
	for range 100 {
		f.turn(0, 8)
	}
	if c := f.counts(); c[normal("a").In(3)] < 380 || c[normal("b").In(2)] < 380 {
		t.Errorf("with one partition left: %v", c)
	}
	f.orders[0].Grant(nil, map[string]bool{"a": true})
	f.took = nil
	f.mark(normal("a").In(1))
	for range 10 {
		f.turn(0, 8)
	}
	if c := f.counts(); len(c) != 1 || !f.orders[0].Paused(normal("a").In(3)) {
		t.Errorf("of a paused tenant: %v", c)
	}
	f.orders[0].Grant(nil, nil)
	if !f.orders[0].Marked(normal("a").In(3)) || f.orders[0].Marked(normal("a").In(0)) {
		t.Errorf("after the pause: %v", f.orders[0].All())
	}
}
