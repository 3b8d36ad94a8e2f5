//go:build amd64 || arm64

package confine

import (
	"golang.org/x/sys/unix"
)

// dropCapabilities gives up what the first process of a user namespace may do, for this thread and the program.
func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// Without CAP_SETPCAP there is nothing to give up; a capability that the kernel does not know is none.
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return step("drop capabilities", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return step("drop capabilities", unix.Capset(&header, &none[0]))
}
