package files

import "time"

// At returns the store as it is so much later.
func (st *Store) At(later time.Duration) *Store {
	return &Store{bus: st.bus, sealer: st.sealer, now: func() time.Time { return time.Now().Add(later) }}
}

// What tests of failures need to know.
const (
	Inline   = inline
	PartSize = partSize
	StrayAge = strayAge
)

// HeadSubject is that of the head of a content.
func HeadSubject(tenant, hash string) string { return headSubject(tenant, hash) }
