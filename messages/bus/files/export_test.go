package files

import "time"

// At returns the store as it is so much later.
func (st *Store) At(later time.Duration) *Store {
	return &Store{bus: st.bus, sealer: st.sealer, now: func() time.Time { return time.Now().Add(later) }}
}

// When returns the store as it is at a time.
func (st *Store) When(at time.Time) *Store {
	return &Store{st.bus, st.sealer, func() time.Time { return at }}
}

// At returns the uploads as they are so much later.
func (u *Uploads) At(later time.Duration) *Uploads {
	u.st = u.st.At(later)
	return u
}

// What tests of failures need to know.
const (
	Inline   = inline
	PartSize = partSize
	StrayAge = strayAge

	ReckonEvery = reckonEvery
)

// HeadSubject is that of the head of a content.
func HeadSubject(tenant, hash string) string { return headSubject(tenant, hash) }
