package auth

// Len is how many addresses are known.
func (f *Failures) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.remotes)
}
