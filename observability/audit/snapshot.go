package audit

import (
	"maps"
	"slices"
)

// snapshot is what a Store has committed. Its files only grow, so it stays true while the Store continues, but for segments
// that are removed for their age.
type snapshot struct {
	position uint64
	head     uint64   // the number of the newest entry of the heads
	extents  []extent // of the tenants in order, and of the heads at the end
}

// extent is what is committed of a chain.
type extent struct {
	chain   string
	from    uint64 // the first entry that is kept
	segment uint64 // the newest; 0: none
	size    int64  // of that
}

// snapshot is good between a Commit and what is added next.
func (s *Store) snapshot() *snapshot {
	out := &snapshot{position: s.position.Sum(), head: s.heads.tail.N}
	for _, name := range slices.Sorted(maps.Keys(s.tenants)) {
		c := s.tenants[name]
		out.extents = append(out.extents, extent{c.name, c.tail.first(), c.segment, c.size})
	}
	out.extents = append(out.extents, extent{headsChain, max(1, s.from), s.heads.segment, s.heads.size})
	return out
}
