//go:build linux || darwin

package observability

import (
	"math"
	"syscall"
)

// mostDescriptors is how many files and connections the process may have open; 0 when that is not known.
func mostDescriptors() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int(min(l.Cur, math.MaxInt32))
}
