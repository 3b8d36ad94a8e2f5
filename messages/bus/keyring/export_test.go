package keyring

import "time"

// SetClock gives a keyring another clock.
func (k *Keyring) SetClock(now func() time.Time) { k.now = now }

// How long a keyset is cached.
const MaxAge = maxAge
