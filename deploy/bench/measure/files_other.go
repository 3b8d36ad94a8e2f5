//go:build !unix

package measure

// RaiseFiles does nothing here.
func RaiseFiles() error { return nil }

// MayOpen is how many connections this process can hold.
func MayOpen() int { return 1 << 20 }
