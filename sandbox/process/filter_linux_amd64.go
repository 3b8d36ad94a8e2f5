package process

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_X86_64

// deniedHere are the calls of [denied] that this architecture alone has.
func deniedHere() []uint32 {
	return []uint32{
		unix.SYS_MKNOD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL,
		unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_QUERY_MODULE, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS,
	}
}

// deniedAloneHere are the calls of [deniedAlone] that this architecture alone has.
func deniedAloneHere() []uint32 {
	return []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}
}
