package audit

import (
	"fmt"
	"time"
)

// Retire removes the segments whose entries are all older than a time, from the front of each chain, after a head has
// said so. It returns how many. Killed in between, Open continues with it.
func (s *Store) Retire(before time.Time) (int, error) {
	if err := s.Commit(); err != nil {
		return 0, err
	}
	removed := 0
	for _, c := range s.tenants {
		from, n, err := s.expired(c, before)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			continue
		}
		removed += n
		c.tail.From, c.changed, s.dirty = from, true, true
		if from > c.tail.N {
			c.segment, c.size = 0, 0
		}
	}
	from, n, err := s.expired(s.heads, before)
	if err != nil {
		return 0, err
	}
	if n > 0 && from <= s.heads.tail.N {
		removed += n
		s.from, s.dirty = from, true
	}
	if err := s.Commit(); err != nil || removed == 0 {
		return 0, err
	}
	for _, c := range s.tenants {
		if err := s.retired(c, c.tail.From); err != nil {
			return 0, err
		}
	}
	return removed, s.retired(s.heads, s.from)
}

// expired is the first entry of a chain that is to be kept, and how many segments stand before it.
func (s *Store) expired(c *chain, before time.Time) (from uint64, n int, err error) {
	segs, err := segments(s.cfg.Dir, c.name)
	if err != nil {
		return 0, 0, err
	}
	for i := range segs {
		end, at := c.tail.N+1, c.at
		if i+1 < len(segs) {
			end = segs[i+1]
			if at, err = s.begin(c, segs[i+1]); err != nil {
				return 0, 0, err
			}
		}
		if !at.Before(before) {
			break
		}
		from, n = end, i+1
	}
	return from, n, nil
}

// begin is the time of the first entry of a segment.
func (s *Store) begin(c *chain, seg uint64) (time.Time, error) {
	for l, err := range lines(s.cfg.Dir, c.name, seg) {
		if err != nil {
			return time.Time{}, err
		}
		e, err := parseLine(l.text)
		if err != nil {
			return time.Time{}, damaged("%s, line 1: %v", l.file(), err)
		}
		return e.At, nil
	}
	return time.Time{}, fmt.Errorf("%w: %s/%s is empty", ErrDamaged, c.name, segmentName(seg))
}
