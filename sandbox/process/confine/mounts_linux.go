//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// devices are those that a program has, in /dev.
func devices() []string { return []string{"null", "zero", "full", "random", "urandom"} }

// enter makes the new namespaces a place of their own: another root with a copy of the few things that a program needs.
func (s *Setup) enter() error {
	// Hides /proc/1 of the sandbox from the program. Late enough: the parent has written the user map.
	if err := prctl(prSetDumpable, 0); err != nil {
		return step("hide process", err)
	}
	if err := syscall.Sethostname([]byte("sandbox")); err != nil {
		return step("set host name", err)
	}
	if s.Proxy {
		if err := listen(); err != nil {
			return err
		}
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return step("separate mounts", err)
	}
	root, err := place()
	if err != nil {
		return err
	}
	if err := s.fill(root); err != nil {
		return err
	}
	if err := syscall.Chdir(root); err != nil {
		return step("enter root", err)
	}
	if err := syscall.PivotRoot(".", "."); err != nil { // the old root ends up over the new one, and is taken away
		return step("change root", err)
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return step("leave old root", err)
	}
	if err := syscall.Chdir("/"); err != nil {
		return step("enter root", err)
	}
	return step("protect root", protect("/", 0))
}

// place mounts the new root over a folder of the host that programs have no use for.
func place() (string, error) {
	var errs []error
	for _, dir := range []string{"/sys", "/mnt", "/srv", "/media"} {
		err := syscall.Mount("sandbox", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "size=1m,nr_inodes=1024,mode=755")
		if err == nil {
			return dir, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", dir, err))
	}
	return "", step("mount root", errors.Join(errs...))
}

// fill makes what a program sees.
func (s *Setup) fill(root string) error {
	if err := fillDev(root + "/dev"); err != nil {
		return err
	}
	if err := fillEtc(root + "/etc"); err != nil {
		return err
	}
	temp := root + TempAt
	if err := mkdir(temp, 0o700); err != nil {
		return step("make temporary folder", err)
	}
	options := "mode=700,nr_inodes=16384,size=" + strconv.FormatInt(s.TempSize, 10)
	if err := syscall.Mount("tmp", temp, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		return step("mount temporary folder", err)
	}
	if s.Workspace != "" {
		if err := s.mountWorkspace(root + WorkspaceAt); err != nil {
			return err
		}
	}
	for _, path := range s.ReadOnly {
		if err := show(root, path); err != nil {
			return step(fmt.Sprintf("mount %q", path), err)
		}
	}
	// Containers hide parts of /proc, and the kernel then lets no other be mounted: a program does without.
	proc := root + "/proc"
	if err := mkdir(proc, 0o555); err != nil {
		return step("make /proc", err)
	}
	const flags = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	if syscall.Mount("proc", proc, "proc", flags, "") == nil {
		// As user 0 of the host the kernel counts no processes: the numbers of this namespace bound them. Older kernels do not.
		if s.MaxPID > 0 {
			_ = create(proc+"/sys/kernel/pid_max", strconv.Itoa(s.MaxPID), syscall.O_WRONLY, 0)
		}
		return step("protect /proc", syscall.Mount("", proc, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY|flags, ""))
	}
	return nil
}

// show mounts a file or a folder of the host at its own path, read-only. A link stays one.
func show(root, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	at := root + path
	if err := mkdirAll(at[:strings.LastIndexByte(at, '/')]); err != nil {
		return err
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return syscall.Symlink(target, at)
	case info.IsDir():
		if err := mkdirAll(at); err != nil {
			return err
		}
	default:
		if err := create(at, "", syscall.O_CREAT|syscall.O_RDONLY, 0o444); err != nil {
			return err
		}
	}
	if err := syscall.Mount(path, at, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return err
	}
	return protect(at, atRecursive)
}

// The library's functions of files would start its poller, which takes as long as all of the mounts.

// mkdir makes a folder, unless there is one.
func mkdir(path string, mode uint32) error {
	if err := syscall.Mkdir(path, mode); err != syscall.EEXIST {
		return err
	}
	return nil
}

// mkdirAll makes a folder and those above it.
func mkdirAll(path string) error {
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			if err := mkdir(path[:i], 0o755); err != nil {
				return err
			}
		}
	}
	return mkdir(path, 0o755)
}

// create makes a file, unless there is one; without text, to mount something over it.
func create(path, text string, flags int, mode uint32) error {
	fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if text == "" {
		return nil
	}
	_, err = syscall.Write(fd, []byte(text))
	return err
}

// protect makes mounts read-only, without devices and set-user-id programs.
func protect(at string, flags uintptr) error {
	return setMount(at, flags, mountRDONLY|mountNOSUID|mountNODEV)
}

func fillDev(dev string) error {
	if err := mkdir(dev, 0o755); err != nil {
		return step("make /dev", err)
	}
	for _, name := range devices() {
		if err := create(dev+"/"+name, "", syscall.O_CREAT|syscall.O_RDONLY, 0o666); err != nil {
			return step("make /dev/"+name, err)
		}
		err := syscall.Mount("/dev/"+name, dev+"/"+name, "", syscall.MS_BIND, "")
		if err != nil && !errors.Is(err, syscall.ENOENT) {
			return step("mount /dev/"+name, err)
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		if err := syscall.Symlink(target, dev+"/"+name); err != nil {
			return step("make /dev/"+name, err)
		}
	}
	return nil
}

// fillEtc names the program's user, which many programs ask for.
func fillEtc(etc string) error {
	if err := mkdir(etc, 0o755); err != nil {
		return step("make /etc", err)
	}
	id := strconv.Itoa(ID)
	for name, text := range map[string]string{
		"passwd": "sandbox:x:" + id + ":" + id + "::" + TempAt + ":/bin/sh\n", "group": "sandbox:x:" + id + ":\n",
	} {
		if err := create(etc+"/"+name, text, syscall.O_CREAT|syscall.O_WRONLY, 0o444); err != nil {
			return step("make /etc/"+name, err)
		}
	}
	return nil
}

// mountWorkspace mounts the workspace. The folder that the parent opened belongs to another mount namespace and cannot be
// mounted, so it is opened again by its path, and must be the same.
func (s *Setup) mountWorkspace(at string) error {
	fd, err := syscall.Open(s.Workspace, oPath|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return step("open workspace", err)
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return step("open workspace", err)
	}
	if uint64(st.Dev) != s.Device || st.Ino != s.Inode { //nolint:unconvert // other types on other systems
		return step("open workspace", errors.New("its folder was replaced"))
	}
	if err := mkdir(at, 0o700); err != nil {
		return step("mount workspace", err)
	}
	if err := syscall.Mount("/proc/self/fd/"+strconv.Itoa(fd), at, "", syscall.MS_BIND, ""); err != nil {
		return step("mount workspace", err)
	}
	return step("mount workspace", setMount(at, 0, mountNOSUID|mountNODEV))
}

// listen opens the proxy's listener in the new network namespace and hands it to the parent.
func listen() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return step("open proxy", err)
	}
	defer syscall.Close(fd)
	lo := struct { // struct ifreq
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{name: [syscall.IFNAMSIZ]byte{'l', 'o'}, flags: syscall.IFF_UP}
	if err := call(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&lo))); err != nil {
		return step("open proxy", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: ProxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return step("open proxy", err)
	}
	if err := syscall.Listen(fd, 128); err != nil {
		return step("open proxy", err)
	}
	return step("open proxy", send(KindListener, nil, fd))
}
