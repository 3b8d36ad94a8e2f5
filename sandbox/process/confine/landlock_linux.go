//go:build amd64 || arm64

package confine

import (
	"fmt"
	"syscall"
	"unsafe"
)

// ABI returns the version of Landlock that the kernel has, 0 for none.
func ABI() int {
	v, _, errno := syscall.Syscall(sysLandlockCreateRuleset, 0, 0, landlockVersion)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// What a program may do with files and folders.
const (
	read    = fsExecute | fsReadFile | fsReadDir
	write   = read | fsWriteFile | fsTruncate | fsRefer | fsRemoveDir | fsRemoveFile | fsMakeDir | fsMakeReg | fsMakeSym
	ofFiles = fsExecute | fsReadFile | fsWriteFile | fsTruncate // not of folders
	device  = fsReadFile | fsWriteFile
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
		fs |= fsTruncate
	}
	if abi >= 5 {
		fs |= fsIoctlDev
	}
	return fs
}

// restrict confines this thread, and the program that is started from it. A thread and not the whole process: in namespaces
// the first process stays outside of the program's domain, so that the program cannot reach it.
func (s *Setup) restrict() error {
	attr := struct{ fs, net, scoped uint64 }{fs: handled(s.ABI)} // struct landlock_ruleset_attr
	if s.ABI >= 4 {
		attr.net = netBindTCP | netConnectTCP
	}
	if s.ABI >= 6 {
		attr.scoped = scopeAbstract | scopeSignal
	}
	fd, _, errno := syscall.Syscall(sysLandlockCreateRuleset, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return step("make Landlock rules", errno)
	}
	r := ruleset{fd: int(fd), fs: attr.fs}
	defer syscall.Close(r.fd)
	if err := s.allow(r); err != nil {
		return err
	}
	if _, _, errno := syscall.Syscall(sysLandlockRestrictSelf, fd, 0, 0); errno != 0 {
		return step("apply Landlock rules", errno)
	}
	return nil
}

// allow adds all rules.
func (s *Setup) allow(r ruleset) error {
	for _, path := range s.ReadOnly {
		if err := r.path(path, read); err != nil {
			return err
		}
	}
	writable := []string{s.Temp}
	if s.Namespaces {
		writable = []string{TempAt}
		if err := r.path("/", fsReadDir); err != nil { // there is nothing to hide
			return err
		}
		for _, path := range []string{"/proc", "/etc", "/dev"} {
			if err := r.path(path, read); err != nil {
				return err
			}
		}
	}
	for _, path := range writable {
		if err := r.path(path, write); err != nil {
			return err
		}
	}
	switch {
	case s.Workspace == "":
	case s.Namespaces:
		if err := r.path(WorkspaceAt, write); err != nil {
			return err
		}
	default:
		if err := r.fdBeneath(WorkspaceFD, write); err != nil {
			return step("allow workspace", err)
		}
	}
	for _, name := range devices() {
		if err := r.path("/dev/"+name, device); err != nil {
			return err
		}
	}
	if s.Proxy && s.ABI >= 4 {
		port := struct{ access, port uint64 }{netConnectTCP, ProxyPort}
		if errno := r.add(ruleNetPort, unsafe.Pointer(&port)); errno != 0 {
			return step("allow proxy", errno)
		}
	}
	return nil
}

// path allows access to a file, or to a folder and all below it. What does not exist cannot be reached.
func (r ruleset) path(path string, access uint64) error {
	fd, err := syscall.Open(path, oPath|syscall.O_CLOEXEC, 0)
	if err == syscall.ENOENT {
		return nil
	}
	if err != nil {
		return step(fmt.Sprintf("allow %q", path), err)
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return step(fmt.Sprintf("allow %q", path), err)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		access &= ofFiles
	}
	return step(fmt.Sprintf("allow %q", path), r.fdBeneath(fd, access))
}

func (r ruleset) fdBeneath(fd int, access uint64) error {
	attr := struct { // struct landlock_path_beneath_attr
		access uint64
		fd     int32
	}{access & r.fs, int32(fd)}
	if errno := r.add(rulePathBeneath, unsafe.Pointer(&attr)); errno != 0 {
		return errno
	}
	return nil
}

func (r ruleset) add(kind uintptr, attr unsafe.Pointer) syscall.Errno {
	_, _, errno := syscall.Syscall6(sysLandlockAddRule, uintptr(r.fd), kind, uintptr(attr), 0, 0, 0)
	return errno
}
