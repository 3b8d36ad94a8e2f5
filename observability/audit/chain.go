package audit

import "time"

// chain is the end of a chain that a Store adds to.
type chain struct {
	name    string
	tail    Tail
	at      time.Time // of the last entry
	segment uint64    // the newest; 0: none
	size    int64     // of that, with what is not written yet
	parts   []part    // not written yet
	changed bool      // since the last head
}

// part is what is to be appended to a segment.
type part struct {
	segment uint64
	data    []byte
}

const day = 24 * time.Hour

// rotates reports whether the next entry begins a segment: each day has its own, and no one grows forever.
func (c *chain) rotates(at time.Time, most int64) bool {
	return c.segment == 0 || c.size >= most || !c.at.Truncate(day).Equal(at.Truncate(day))
}

// link makes an entry the next of the chain.
func (c *chain) link(e *Entry) {
	e.N, e.Prev, e.At = c.tail.N+1, c.tail.Hash, e.At.UTC().Round(0)
	e.Hash = e.sum(c.name)
}

// add appends a linked entry to what is to be written.
func (c *chain) add(e *Entry, rotate bool) (size int) {
	if rotate {
		c.segment, c.size = e.N, 0
	}
	if rotate || len(c.parts) == 0 {
		c.parts = append(c.parts, part{segment: c.segment})
	}
	p := &c.parts[len(c.parts)-1]
	before := len(p.data)
	p.data = e.appendLine(p.data)
	size = len(p.data) - before
	c.size += int64(size)
	c.tail.N, c.tail.Hash, c.at, c.changed = e.N, e.Hash, e.At, true
	return size
}

// write stores what was added.
func (c *chain) write(d disk) error {
	for _, p := range c.parts {
		if err := d.add(c.name+"/"+segmentName(p.segment), p.data); err != nil {
			return err
		}
	}
	c.parts = nil
	return nil
}
