//go:build amd64 || arm64

package confine

import (
	"syscall"
	"unsafe"
)

// dropCapabilities gives up what the first process of a user namespace may do, for this thread and the program.
func dropCapabilities() error {
	for c := uintptr(0); c <= lastCapability; c++ {
		// Without CAP_SETPCAP there is nothing to give up; a capability that the kernel does not know is none.
		_ = prctl(prCapbsetDrop, c)
	}
	if err := prctl(prCapAmbient, prCapAmbientClearAll); err != nil {
		return step("drop capabilities", err)
	}
	header := struct { // struct __user_cap_header_struct
		version uint32
		pid     int32
	}{version: capabilityVersion3}
	var none [6]uint32 // two of struct __user_cap_data_struct
	_, _, errno := syscall.Syscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0)
	if errno != 0 {
		return step("drop capabilities", errno)
	}
	return nil
}
