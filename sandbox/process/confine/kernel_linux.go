//go:build amd64 || arm64

package confine

import (
	"syscall"
	"unsafe"
)

// What package syscall lacks, as in the headers of the kernel: golang.org/x/sys would be initialised too late, see the comment
// of the package. The numbers of these calls are the same on all architectures but for seccomp's.
const (
	sysIOUringSetup          = 425
	sysCloseRange            = 436
	sysOpenat2               = 437
	sysMountSetattr          = 442
	sysLandlockCreateRuleset = 444
	sysLandlockAddRule       = 445
	sysLandlockRestrictSelf  = 446

	oPath             = 0x200000
	atFDCWD           = -100
	atRecursive       = 0x8000
	closeRangeCloexec = 4

	resolveNoMagiclinks = 2
	resolveNoSymlinks   = 4
	resolveBeneath      = 8

	mountRDONLY = 1
	mountNOSUID = 2
	mountNODEV  = 4

	prSetDumpable        = 4
	prSetNoNewPrivs      = 38
	prCapbsetDrop        = 24
	prCapAmbient         = 47
	prCapAmbientClearAll = 4
	lastCapability       = 40
	capabilityVersion3   = 0x20080522

	seccompSetModeFilter = 1

	landlockVersion = 1 // a flag of sysLandlockCreateRuleset
	fsExecute       = 1 << 0
	fsWriteFile     = 1 << 1
	fsReadFile      = 1 << 2
	fsReadDir       = 1 << 3
	fsRemoveDir     = 1 << 4
	fsRemoveFile    = 1 << 5
	fsMakeDir       = 1 << 7
	fsMakeReg       = 1 << 8
	fsMakeSym       = 1 << 12
	fsRefer         = 1 << 13
	fsTruncate      = 1 << 14
	fsIoctlDev      = 1 << 15
	netBindTCP      = 1 << 0
	netConnectTCP   = 1 << 1
	scopeAbstract   = 1 << 0
	scopeSignal     = 1 << 1
	rulePathBeneath = 1
	ruleNetPort     = 2
)

func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func prctl(option, argument uintptr) error { return call(syscall.SYS_PRCTL, option, argument) }

// openat2 opens a folder without access to its content. The structure is struct open_how.
func openat2(dir int, path string, resolve uint64) (int, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	how := struct{ flags, mode, resolve uint64 }{oPath | syscall.O_DIRECTORY | syscall.O_CLOEXEC, 0, resolve}
	fd, _, errno := syscall.Syscall6(sysOpenat2, uintptr(dir), uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// setMount sets attributes of a mount, or of all below. The structure is struct mount_attr.
func setMount(path string, flags uintptr, attributes uint64) error {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	attr := struct{ set, clear, propagation, namespace uint64 }{set: attributes}
	at := atFDCWD
	_, _, errno := syscall.Syscall6(sysMountSetattr, uintptr(at), uintptr(unsafe.Pointer(p)), flags, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
