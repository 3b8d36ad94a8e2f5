package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// ErrDamaged means that a folder is not as an auditor left it, not even one that was killed.
var ErrDamaged = errors.New("the audit is damaged: `longshore audit verify` says where; to continue, start a new folder and keep this one")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// load finds the last head, and takes back what was written after it.
func (s *Store) load() error {
	st, err := s.loadHeads()
	if err != nil {
		return err
	}
	if s.position, s.compared, err = st.body.at(st.last.Position); err != nil {
		return damaged("the newest head: %v", err)
	}
	s.from = st.body.From
	for name, tail := range st.tails {
		c := &chain{name: chainOf(name), tail: tail}
		s.tenants[name] = c
		if err := s.loadChain(c); err != nil {
			return err
		}
	}
	names, err := chains(s.cfg.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if s.tenants[tenantOf(name)] == nil { // it was begun after the head
			if err := s.loadChain(&chain{name: name}); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadHeads reads the newest segment of the heads that has one.
func (s *Store) loadHeads() (*state, error) {
	segs, err := segments(s.cfg.Dir, headsChain)
	if err != nil {
		return nil, err
	}
	for _, seg := range slices.Backward(segs) {
		st, size, err := s.headsOf(seg)
		if err != nil {
			return nil, err
		}
		if st.last.N == 0 {
			s.cfg.Log.Warn("take back what was not committed", "file", headsChain+"/"+segmentName(seg))
			if err := s.cfg.disk.remove(headsChain + "/" + segmentName(seg)); err != nil {
				return nil, err
			}
			continue
		}
		if err := s.cut(headsChain, seg, size); err != nil {
			return nil, err
		}
		s.heads.tail = Tail{N: st.last.N, Hash: st.last.Hash}
		s.heads.at, s.heads.segment, s.heads.size = st.last.At, seg, size
		return st, s.retired(s.heads, st.body.From)
	}
	return newState(), nil
}

// headsOf reads a segment of the heads, up to the end of its last head.
func (s *Store) headsOf(seg uint64) (*state, int64, error) {
	st, size := newState(), int64(0)
	var prev *Entry
	for l, err := range lines(s.cfg.Dir, headsChain, seg) {
		if err != nil {
			return nil, 0, err
		}
		if l.isTorn() {
			break
		}
		e, err := parseLine(l.text)
		if err == nil && (e.Hash != e.sum(headsChain) || prev != nil && (e.N != prev.N+1 || e.Prev != prev.Hash)) {
			err = errors.New("it does not follow the line before")
		}
		if err == nil && (!e.isSigned() || e.Key != s.cfg.Key.Public() && !slices.Contains(s.cfg.Keys, e.Key)) {
			err = errors.New("it is not signed by a key of this auditor (LONGSHORE_AUDIT_KEYS)")
		}
		if err != nil {
			return nil, 0, damaged("%s, line %d: %v", l.file(), l.number, err)
		}
		prev = &e
		whole, err := st.take(&e)
		if err != nil {
			return nil, 0, damaged("%s, line %d: %v", l.file(), l.number, err)
		}
		if whole {
			size = l.offset + int64(len(l.text))
		}
	}
	if st.last.N > 0 && !st.whole {
		return nil, 0, damaged("%s/%s does not begin with a head of all chains", headsChain, segmentName(seg))
	}
	return st, size, nil
}

// cut shortens a segment to a size, if it is longer.
func (s *Store) cut(chain string, seg uint64, size int64) error {
	path := chain + "/" + segmentName(seg)
	info, err := os.Stat(filepath.Join(s.cfg.Dir, filepath.FromSlash(path)))
	if err != nil {
		return fmt.Errorf("look at segment: %w", err)
	}
	if info.Size() <= size {
		return nil
	}
	s.cfg.Log.Warn("take back what was not committed", "file", path, "bytes", info.Size()-size)
	return s.cfg.disk.truncate(path, size)
}

// loadChain brings a chain to where the head says that it ends.
func (s *Store) loadChain(c *chain) error {
	segs, err := segments(s.cfg.Dir, c.name)
	if err != nil {
		return err
	}
	for len(segs) > 0 && segs[len(segs)-1] > c.tail.N {
		last := c.name + "/" + segmentName(segs[len(segs)-1])
		s.cfg.Log.Warn("take back what was not committed", "file", last)
		if err := s.cfg.disk.remove(last); err != nil {
			return err
		}
		segs = segs[:len(segs)-1]
	}
	switch {
	case c.tail.first() > c.tail.N: // nothing is kept
		return s.retired(c, c.tail.From)
	case len(segs) == 0:
		return damaged("%s is gone, entries up to %d were signed", c.name, c.tail.N)
	}
	seg := segs[len(segs)-1]
	e, size, err := s.find(c, seg)
	if err != nil {
		return err
	}
	if e.Hash != c.tail.Hash {
		return damaged("%s/%s: entry %d is not the one that was signed", c.name, segmentName(seg), e.N)
	}
	if err := s.cut(c.name, seg, size); err != nil {
		return err
	}
	c.at, c.segment, c.size = e.At, seg, size
	return s.retired(c, c.tail.From)
}

// find looks for the last entry of a chain in its newest segment, and where that ends.
func (s *Store) find(c *chain, seg uint64) (*Entry, int64, error) {
	if e, size, ok := s.lastOf(c, seg); ok {
		return e, size, nil
	}
	for l, err := range lines(s.cfg.Dir, c.name, seg) {
		if err != nil {
			return nil, 0, err
		}
		if l.isTorn() {
			break
		}
		e, err := parseLine(l.text)
		if err != nil {
			return nil, 0, damaged("%s, line %d: %v", l.file(), l.number, err)
		}
		if e.N == c.tail.N {
			return &e, l.offset + int64(len(l.text)), nil
		}
	}
	return nil, 0, damaged("%s/%s: entry %d, which was signed, is not there", c.name, segmentName(seg), c.tail.N)
}

// lastOf is the last entry of a segment, if that is the last one of its chain: as it is but after a kill.
func (s *Store) lastOf(c *chain, seg uint64) (*Entry, int64, bool) {
	f, err := os.Open(filepath.Join(s.cfg.Dir, c.name, segmentName(seg)))
	if err != nil {
		return nil, 0, false
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, false
	}
	const enough = 2*maxBody + 4<<10
	from := max(0, size-enough)
	text := make([]byte, size-from)
	if _, err := f.ReadAt(text, from); err != nil {
		return nil, 0, false
	}
	text = text[bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n')+1:]
	e, err := parseLine(text)
	return &e, size, err == nil && e.N == c.tail.N
}

// retired removes the segments before the first entry that is kept, which a kill may have left.
func (s *Store) retired(c *chain, from uint64) error {
	segs, err := segments(s.cfg.Dir, c.name)
	if err != nil {
		return err
	}
	for i, seg := range segs {
		end := c.tail.N + 1
		if i+1 < len(segs) {
			end = segs[i+1]
		}
		if end > from {
			break
		}
		if err := s.cfg.disk.remove(c.name + "/" + segmentName(seg)); err != nil {
			return err
		}
	}
	return nil
}
