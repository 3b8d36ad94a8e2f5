// Package lanes decides from which lanes of the queue a worker takes next. It is a plain data structure without clock, randomness or
// I/O. Order is not safe for concurrent use.
//
// Wake-ups and priorities share turns, 64 to 16 to 4 to 1: runs in progress go first, and thousands of concurrent wake-ups do not
// keep new runs from starting. Low priorities are slow but never starve. Within a priority, tenants share turns by their weights. If the queue
// is divided, a tenant has the turns of one, and the partitions of its lane take them in turn.
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

// lane is one that was ever marked, and not forgotten since: all partitions of it together.
type lane struct {
	name   queue.Lane // of the first partition
	parts  turns      // those that have work
	member member     // of its class
}

// part is a lane in one partition that was ever marked, and not forgotten since.
type part struct {
	lane   *lane
	name   queue.Lane
	mark   uint64 // counts marks; 0: it has no work
	member member // of its lane
}

// Order is what a worker believes about the lanes.
type Order struct {
	classes map[messages.Priority]*class
	turns   turns                // of the classes
	lanes   map[queue.Lane]*lane // by the name of their first partition
	parts   map[queue.Lane]*part
	marks   uint64
	weights map[string]int
	paused  map[string]bool
}

// New returns an Order in which no lane has work.
func New() *Order {
	o := &Order{classes: map[messages.Priority]*class{}, lanes: map[queue.Lane]*lane{}, parts: map[queue.Lane]*part{}}
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
	p := o.parts[name]
	if p == nil {
		l := o.lanes[name.In(0)]
		if l == nil {
			l = &lane{name: name.In(0)}
			l.member.lane = l
			o.lanes[l.name] = l
		}
		p = &part{lane: l, name: name}
		p.member.part = p
		o.parts[name] = p
	}
	p.mark = o.marks
	o.place(p)
}

// place lets a lane take turns in a partition, or not.
func (o *Order) place(p *part) {
	l, c := p.lane, o.classes[p.name.Priority]
	if p.mark == 0 {
		l.parts.leave(&p.member)
	} else {
		l.parts.join(&p.member)
	}
	if len(l.parts.heap) == 0 || o.paused[l.name.Tenant] {
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
	p := o.parts[name]
	return p != nil && p.mark != 0
}

// All are the lanes that are believed to have work, those of paused tenants too.
func (o *Order) All() []queue.Lane {
	var all []queue.Lane
	for name, p := range o.parts {
		if p.mark != 0 {
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
	at := map[*part]int{}
	for range n {
		m := o.turns.next()
		if m == nil {
			return nil
		}
		c := m.class
		l := c.lanes.next().lane
		p := l.parts.next().part
		o.turns.charge(m, c.weight, 1)
		c.lanes.charge(&l.member, o.weight(l), 1)
		l.parts.charge(&p.member, 1, 1)
		i, ok := at[p]
		if !ok {
			i = len(shares)
			at[p], shares = i, append(shares, Share{Lane: p.name, mark: p.mark})
		}
		shares[i].N++
	}
	return shares
}

func (o *Order) weight(l *lane) int { return min(max(1, o.weights[l.name.Tenant]), unit) }

// Took says how much a share brought. A dry lane has no more, unless it was marked again since the share was handed out.
func (o *Order) Took(s Share, got int, dry bool) {
	p := o.parts[s.Lane]
	if p == nil {
		return
	}
	l, c := p.lane, o.classes[s.Lane.Priority]
	o.turns.charge(&c.member, c.weight, got-s.N)
	c.lanes.charge(&l.member, o.weight(l), got-s.N)
	l.parts.charge(&p.member, 1, got-s.N)
	if dry && p.mark == s.mark {
		p.mark = 0
		o.place(p)
	}
}

// Grant sets the weights of tenants, 1 for others, and whose lanes are left alone for now. It also forgets lanes without
// work.
func (o *Order) Grant(weights map[string]int, paused map[string]bool) {
	o.weights, o.paused = weights, paused
	for name, p := range o.parts {
		if o.place(p); p.mark == 0 {
			delete(o.parts, name)
			if len(p.lane.parts.heap) == 0 {
				delete(o.lanes, p.lane.name)
			}
		}
	}
}
