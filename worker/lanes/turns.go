package lanes

import (
	"cmp"
	"container/heap"
)

// unit is the length of a turn at weight 1. Weights beyond it would make turns of no length.
const unit = 1_000_000

// turns hands out turns by weight: start-time fair queueing. Each member has a virtual time at which its next turn begins. The member
// with the earliest time gets the turn, and its time advances by unit/weight. A member that joins begins at the present, so that
// idle members do not save up turns.
type turns struct {
	now    uint64 // when the turn began that was given last
	joined uint64
	heap   members
}

// member takes turns while it is in.
type member struct {
	start uint64 // of its next turn
	order uint64 // of those that start together the one that joined first is first
	index int    // in the heap, from 1; 0: it is out
	part  *part  // or
	lane  *lane  // or
	class *class
}

func (t *turns) join(m *member) {
	if m.index != 0 {
		return
	}
	t.joined++
	m.start, m.order = max(m.start, t.now), t.joined
	heap.Push(&t.heap, m)
}

func (t *turns) leave(m *member) {
	if m.index != 0 {
		heap.Remove(&t.heap, m.index-1)
	}
}

// next gives a turn to the first member, nil when there is none.
func (t *turns) next() *member {
	if len(t.heap) == 0 {
		return nil
	}
	m := t.heap[0]
	t.now = max(t.now, m.start) // one that got turns back may begin in the past
	return m
}

// charge moves the next turn of a member by n turns of its weight, back if n is negative.
func (t *turns) charge(m *member, weight, n int) {
	length := uint64(unit / max(1, weight))
	if n < 0 {
		m.start -= min(m.start, length*uint64(-n))
	} else {
		m.start += length * uint64(n)
	}
	if m.index != 0 {
		heap.Fix(&t.heap, m.index-1)
	}
}

// members is a heap by start.
type members []*member //nolint:recvcheck // as container/heap wants it

func (h members) Len() int { return len(h) }

func (h members) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].start, h[j].start), cmp.Compare(h[i].order, h[j].order)) < 0
}

func (h members) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

// Push implements heap.Interface.
func (h *members) Push(x any) {
	m := x.(*member) //nolint:forcetypeassert // nothing else is pushed
	*h = append(*h, m)
	m.index = len(*h)
}

// Pop implements heap.Interface.
func (h *members) Pop() any {
	m := (*h)[len(*h)-1]
	m.index = 0
	*h = (*h)[:len(*h)-1]
	return m
}
