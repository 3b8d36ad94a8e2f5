//go:build amd64 || arm64

package confine

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ABI returns the version of Landlock that the kernel has, 0 for none.
func ABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// What a program may do with files and folders.
const (
	fsRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fsWrite = fsRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	// Of files, not folders.
	fsFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE
	fsDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE

	ruleNetPort = 2
)

// ruleset is a set of Landlock rules that is being made. Everything that no rule allows is forbidden.
type ruleset struct {
	fd int
	fs uint64 // what is handled
}

// handled are the accesses of files that a version of Landlock knows.
func handled(abi int) uint64 {
	fs := uint64(1<<14 - 1) // up to REFER, which version 2 brought
	if abi >= 3 {
		fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return fs
}

// restrict confines this thread, and the program that is started from it. A thread and not the whole process: in namespaces
// the first process stays outside of the program's domain, so that the program cannot reach it.
func (s *Setup) restrict() error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled(s.ABI)}
	if s.ABI >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if s.ABI >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Offsetof(attr.Quiet_access_fs), 0)
	if errno != 0 {
		return step("make Landlock rules", errno)
	}
	r := ruleset{fd: int(fd), fs: attr.Handled_access_fs}
	defer unix.Close(r.fd)
	if err := s.allow(r); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return step("apply Landlock rules", errno)
	}
	return nil
}

// allow adds all rules.
func (s *Setup) allow(r ruleset) error {
	for _, path := range s.ReadOnly {
		if err := r.path(path, fsRead); err != nil {
			return err
		}
	}
	writable := []string{s.Temp}
	if s.Namespaces {
		writable = []string{TempAt}
		if err := r.path("/", unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil { // there is nothing to hide
			return err
		}
		for _, path := range []string{"/proc", "/etc", "/dev"} {
			if err := r.path(path, fsRead); err != nil {
				return err
			}
		}
	}
	for _, path := range writable {
		if err := r.path(path, fsWrite); err != nil {
			return err
		}
	}
	switch {
	case s.Workspace == "":
	case s.Namespaces:
		if err := r.path(WorkspaceAt, fsWrite); err != nil {
			return err
		}
	default:
		if err := r.fdBeneath(WorkspaceFD, fsWrite); err != nil {
			return step("allow workspace", err)
		}
	}
	for _, name := range devices() {
		if err := r.path("/dev/"+name, fsDevice); err != nil {
			return err
		}
	}
	if s.Proxy && s.ABI >= 4 {
		port := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, ProxyPort}
		if errno := r.add(ruleNetPort, unsafe.Pointer(&port)); errno != 0 {
			return step("allow proxy", errno)
		}
	}
	return nil
}

// path allows access to a file, or to a folder and all below it. What does not exist cannot be reached.
func (r ruleset) path(path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return step(fmt.Sprintf("allow %q", path), err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return step(fmt.Sprintf("allow %q", path), err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fsFile
	}
	return step(fmt.Sprintf("allow %q", path), r.fdBeneath(fd, access))
}

func (r ruleset) fdBeneath(fd int, access uint64) error {
	attr := unix.LandlockPathBeneathAttr{Allowed_access: access & r.fs, Parent_fd: int32(fd)}
	if errno := r.add(unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(&attr)); errno != 0 {
		return errno
	}
	return nil
}

func (r ruleset) add(kind uintptr, attr unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), kind, uintptr(attr), 0, 0, 0)
	return errno
}
