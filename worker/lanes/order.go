// Package lanes decides from which lanes of the queue a worker takes next. It is a plain data structure without clock, randomness or
// I/O. Order is not safe for concurrent use.
//
// Wake-ups and priorities share turns, 64 to 16 to 4 to 1: runs in progress go first, and thousands of concurrent wake-ups do not
// keep new runs from starting. Low priorities are slow but never starve. Within a priority, tenants share turns by their weights.
package lanes

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
)

// classes are wake-ups, the priorities, and their shares.
func classes() []*class {
	return []*class{
		{priority: queue.WakeLane().Priority, weight: 64},
		{priority: messages.PriorityHigh, weight: 16},
		{priority: messages.PriorityNormal, weight: 4},
		{priority: messages.PriorityLow, weight: 1},
	}
}

// class is the lanes of one priority.
type class struct {
	priority messages.Priority
	weight   int
	lanes    turns
	member   member
}

// lane is one that was ever marked, and not forgotten since.
type lane struct {
	name   queue.Lane
	mark   uint64 // counts marks; 0: it has no work
	member member // of its class
}

// Order is what a worker believes about the lanes.
type Order struct {
	classes map[messages.Priority]*class
	turns   turns // of the classes
	lanes   map[queue.Lane]*lane
	marks   uint64
	weights map[string]int
	paused  map[string]bool
}

// New returns an Order in which no lane has work.
func New() *Order {
	o := &Order{classes: map[messages.Priority]*class{}, lanes: map[queue.Lane]*lane{}}
	for _, c := range classes() {
		c.member.class = c
		o.classes[c.priority] = c
	}
	return o
}

// Mark notes that a lane has work, or may have.
func (o *Order) Mark(name queue.Lane) {
	o.marks++
	if o.classes[name.Priority] == nil {
		return
	}
	l := o.lanes[name]
	if l == nil {
		l = &lane{name: name}
		l.member.lane = l
		o.lanes[name] = l
	}
	l.mark = o.marks
	o.place(l)
}

// place lets a lane take turns, or not.
func (o *Order) place(l *lane) {
	c := o.classes[l.name.Priority]
	if l.mark == 0 || o.paused[l.name.Tenant] {
		c.lanes.leave(&l.member)
	} else {
		c.lanes.join(&l.member)
	}
	if len(c.lanes.heap) == 0 {
		o.turns.leave(&c.member)
	} else {
		o.turns.join(&c.member)
	}
}

// Marked reports whether a lane is believed to have work.
func (o *Order) Marked(name queue.Lane) bool {
	l := o.lanes[name]
	return l != nil && l.mark != 0
}

// All are the lanes that are believed to have work, those of paused tenants too.
func (o *Order) All() []queue.Lane {
	var all []queue.Lane
	for name, l := range o.lanes {
		if l.mark != 0 {
			all = append(all, name)
		}
	}
	return all
}

// Ready reports whether there is a lane to take from.
func (o *Order) Ready() bool { return len(o.turns.heap) > 0 }

// Paused reports whether a lane is left alone for now.
func (o *Order) Paused(name queue.Lane) bool { return o.paused[name.Tenant] }

// Share is how much to take from a lane.
type Share struct {
	Lane queue.Lane
	N    int
	mark uint64
}

// Share hands out n turns, each as long as the lanes' work lasts: what a lane has not got goes back by Took. It is empty
// when no lane has work.
func (o *Order) Share(n int) []Share {
	var shares []Share
	at := map[*lane]int{}
	for range n {
		m := o.turns.next()
		if m == nil {
			return nil
		}
		c := m.class
		l := c.lanes.next().lane
		o.turns.charge(m, c.weight, 1)
		c.lanes.charge(&l.member, o.weight(l), 1)
		i, ok := at[l]
		if !ok {
			i = len(shares)
			at[l], shares = i, append(shares, Share{Lane: l.name, mark: l.mark})
		}
		shares[i].N++
	}
	return shares
}

func (o *Order) weight(l *lane) int { return min(max(1, o.weights[l.name.Tenant]), unit) }

// Took says how much a share brought. A dry lane has no more, unless it was marked again since the share was handed out.
func (o *Order) Took(s Share, got int, dry bool) {
	l := o.lanes[s.Lane]
	if l == nil {
		return
	}
	c := o.classes[s.Lane.Priority]
	o.turns.charge(&c.member, c.weight, got-s.N)
	c.lanes.charge(&l.member, o.weight(l), got-s.N)
	if dry && l.mark == s.mark {
		l.mark = 0
		o.place(l)
	}
}

// Grant sets the weights of tenants, 1 for others, and whose lanes are left alone for now. It also forgets lanes without
// work.
func (o *Order) Grant(weights map[string]int, paused map[string]bool) {
	o.weights, o.paused = weights, paused
	for name, l := range o.lanes {
		if o.place(l); l.mark == 0 {
			delete(o.lanes, name)
		}
	}
}
