package process

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_AARCH64

// deniedHere are the calls of [denied] that this architecture alone has.
func deniedHere() []uint32 { return []uint32{unix.SYS_KEXEC_FILE_LOAD} }

// deniedAloneHere are the calls of [deniedAlone] that this architecture alone has.
func deniedAloneHere() []uint32 { return nil }
