//go:build amd64 || arm64

package process

import (
	"cmp"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter of system calls: those of other architectures kill the program, those on the lists fail, others are allowed. It
// is written here and not by a library, because those keep tables of all architectures that every start would build.

// denied are system calls that fail with EPERM: what makes namespaces and mounts, what reaches other processes, what the
// kernel has that programs of tools do not need, and what only root may do.
func denied() []uint32 {
	return []uint32{
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOUNT_SETATTR,
		unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_MKNODAT,

		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,

		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
		unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET,
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_SEMOP, unix.SYS_MSGGET, unix.SYS_MSGCTL,
		unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_LSM_SET_SELF_ATTR,

		unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SYSLOG,
		unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME,
		unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP,
	}
}

// deniedAlone are further ones without namespaces: modes, owners, times and attributes of files, which Landlock does not
// guard, also of those that cannot be opened; other processes of the same user; and leaving the process group, which is what
// is killed in the end.
func deniedAlone() []uint32 {
	return []uint32{
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
		unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
		unix.SYS_PIDFD_OPEN, unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET, unix.SYS_SETSID, unix.SYS_SETPGID,
	}
}

// Where the filter finds things in struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
)

// offArg is the lower half of an argument: the architectures that are supported are little endian.
func offArg(i int) uint32 { return 16 + 8*uint32(i) }

const (
	retAllow = unix.SECCOMP_RET_ALLOW
	retEPERM = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retNone  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS) // a C library then does it in another way

	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
	x32Bit = 0x40000000
)

func load32(off uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
}

func ret(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

// jump skips that many instructions if the test of the loaded value is true, or false.
func jump(test uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

// filter returns the program for the kernel. Alone is without namespaces.
func filter(alone, proxy bool) []unix.SockFilter {
	p := []unix.SockFilter{
		load32(offArch),
		jump(unix.BPF_JEQ, nativeArch, 1, 0),
		ret(unix.SECCOMP_RET_KILL_PROCESS), // its numbers mean other calls
		load32(offNumber),
		jump(unix.BPF_JGE, x32Bit, 0, 1), // the x32 calls of amd64
		ret(retNone),
	}
	var rules []rule
	// on adds what is done for a system call: block must end with ret.
	on := func(number uint32, block ...unix.SockFilter) { rules = append(rules, rule{number, block}) }
	for _, number := range append(denied(), deniedHere()...) {
		on(number, ret(retEPERM))
	}
	on(unix.SYS_CLONE3, ret(retNone)) // its flags are in memory, where a filter cannot look
	on(unix.SYS_CLONE, load32(offArg(0)), jump(unix.BPF_JSET, newNamespaces, 0, 1), ret(retEPERM), ret(retAllow))
	on(unix.SYS_IOCTL, load32(offArg(1)), jump(unix.BPF_JEQ, unix.TIOCSTI, 1, 0), jump(unix.BPF_JEQ, tioclinux, 0, 1), ret(retEPERM), ret(retAllow))
	// Of other processes.
	own := []unix.SockFilter{load32(offArg(0)), jump(unix.BPF_JEQ, 0, 1, 0), ret(retEPERM), ret(retAllow)}
	on(unix.SYS_PRLIMIT64, own...)
	if proxy {
		on(unix.SYS_SOCKET, // TCP over IPv4
			load32(offArg(0)), jump(unix.BPF_JEQ, unix.AF_INET, 0, 6),
			load32(offArg(1)), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xf}, jump(unix.BPF_JEQ, unix.SOCK_STREAM, 0, 3),
			load32(offArg(2)), jump(unix.BPF_JEQ, 0, 2, 0), jump(unix.BPF_JEQ, unix.IPPROTO_TCP, 1, 0), ret(retEPERM), ret(retAllow))
	} else {
		on(unix.SYS_SOCKET, ret(retEPERM))
	}
	if alone {
		for _, number := range append(deniedAlone(), deniedAloneHere()...) {
			on(number, ret(retEPERM))
		}
		for _, number := range []uint32{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR} {
			on(number, own...)
		}
	}
	return append(p, search(rules)...)
}

// rule is what is done for a system call.
type rule struct {
	number uint32
	block  []unix.SockFilter
}

// search finds the rule of a system call in two steps. The kernel runs a filter for each call that there is when it is loaded, for
// which one long list takes half a millisecond.
func search(rules []rule) []unix.SockFilter {
	slices.SortFunc(rules, func(a, b rule) int { return cmp.Compare(a.number, b.number) })
	const together = 10
	groups := slices.Collect(slices.Chunk(rules, together))
	var code []unix.SockFilter
	starts := make([]int, len(groups))
	for i, group := range groups {
		starts[i] = len(code)
		for _, r := range group {
			code = append(append(code, jump(unix.BPF_JEQ, r.number, 0, uint8(len(r.block)))), r.block...)
		}
		code = append(code, ret(retAllow))
	}
	var find []unix.SockFilter
	size := 2*(len(groups)-1) + 1
	to := func(group int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(size - len(find) - 1 + starts[group])}
	}
	for i := range groups[1:] {
		find = append(find, jump(unix.BPF_JGE, groups[i+1][0].number, 1, 0))
		find = append(find, to(i))
	}
	find = append(find, to(len(groups)-1))
	return append(find, code...)
}

// tioclinux pastes into a console.
const tioclinux = 0x541c

// packed returns a filter as the kernel takes it.
func packed(filter []unix.SockFilter) []byte {
	return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&filter[0])), len(filter)*int(unsafe.Sizeof(filter[0]))))
}
