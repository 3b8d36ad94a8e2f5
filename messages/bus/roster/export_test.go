package roster

import "time"

// Ahead lets the clock of a roster run ahead.
func (r *Roster) Ahead(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = func() time.Time { return time.Now().Add(d) }
}
