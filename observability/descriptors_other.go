//go:build !linux && !darwin

package observability

// mostDescriptors is how many files and connections the process may have open; 0 when that is not known.
func mostDescriptors() int { return 0 }
