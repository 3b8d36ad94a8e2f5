package apikey

// Cached is how many keys, and ids that are none, are in memory.
func (k *Keys) Cached() (known, none int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.known), len(k.none)
}
