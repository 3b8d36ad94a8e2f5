// Command attacker tries to break out of the sandbox, and to use more than it may. It refuses to run anywhere else.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tries is what became of each attempt: "ok", or the name of the error.
type tries map[string]string

func (t tries) add(name string, err error) {
	t[name] = errName(err)
}

func errName(err error) string {
	for e := err; e != nil; {
		if errno, ok := e.(syscall.Errno); ok {
			if errno == 0 {
				return "ok"
			}
			return unix.ErrnoName(errno)
		}
		u, ok := e.(interface{ Unwrap() error })
		if !ok {
			return e.Error()
		}
		e = u.Unwrap()
	}
	return "ok"
}

func call(nr uintptr, a ...uintptr) error {
	var args [6]uintptr
	copy(args[:], a)
	_, _, errno := unix.Syscall6(nr, args[0], args[1], args[2], args[3], args[4], args[5])
	if errno != 0 {
		return errno
	}
	return nil
}

func read(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Read(fd, make([]byte, 1))
	if err == unix.EISDIR {
		return nil
	}
	return err
}

func write(path string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func ptr(s string) uintptr {
	p, _ := unix.BytePtrFromString(s)
	return uintptr(unsafe.Pointer(p))
}

func main() {
	// Its marks are a variable that only the tests set and a file that is readable wherever there is no sandbox.
	if os.Getenv("ATTACKER_MAY_RUN") != "in the sandbox" || len(os.Args) < 3 || read(os.Getenv("ATTACKER_CANARY")) == nil {
		fmt.Fprintln(os.Stderr, "attacker: refuses to run outside of the sandbox")
		os.Exit(97)
	}
	t := tries{}
	worker, _ := strconv.Atoi(os.Getenv("ATTACKER_WORKER"))
	outside := os.Getenv("ATTACKER_CANARY")
	args := os.Args[3:] // after the attack and a token by which its processes are found
	switch os.Args[1] {
	case "files":
		for _, path := range args {
			t.add("read "+path, read(path))
			t.add("write "+path, write(path))
		}
	case "stat":
		var st unix.Stat_t
		t.add("stat", unix.Stat(outside, &st))
	case "fds":
		for fd := 3; fd < 1024; fd++ {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				if target, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); !strings.HasPrefix(target, "anon_inode:") { // the runtime's own
					t[strconv.Itoa(fd)] = "open " + target
				}
			}
		}
		for fd := range 3 {
			_, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
			t.add(fmt.Sprintf("socket %d", fd), err)
		}
	case "core":
		var l unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_CORE, &l)
		t["core"] = fmt.Sprint(l.Cur, " ", l.Max)
	case "forks":
		most, _ := strconv.Atoi(args[0])
		n := 0
		for ; n < most; n++ {
			pid, err := fork(args[1])
			if err != nil {
				t.add("fork", err)
				break
			}
			_ = pid
		}
		t["forks"] = strconv.Itoa(n)
	case "memory":
		flags := unix.MAP_PRIVATE
		if args[0] == "shared" {
			flags = unix.MAP_SHARED
		}
		mb := 0
		for ; mb < 6000; mb += 16 {
			_, err := unix.Mmap(-1, 0, 16<<20, unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_ANON)
			if err != nil {
				t.add("mmap", err)
				break
			}
		}
		t["mb"] = strconv.Itoa(mb)
		_, err := unix.MemfdCreate("x", 0)
		t.add("memfd", err)
		t.add("shmget", call(unix.SYS_SHMGET, 0, 1<<20, 0o1600))
		t.add("mq_open", call(unix.SYS_MQ_OPEN, ptr("x"), unix.O_CREAT|unix.O_RDWR, 0o600, 0))
	case "crowd": // processes that each have memory of their own, or share that of the first
		size, _ := strconv.Atoi(args[1])
		most, _ := strconv.Atoi(args[2])
		region, err := unix.Mmap(-1, 0, size<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		t.add("mmap", err)
		touch(region)
		for range most {
			pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			for pid == 0 && errno == 0 {
				if args[0] == "own" {
					touch(region)
				}
				_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
			t.add("fork", errno)
		}
		wait, _ := time.ParseDuration(args[3])
		time.Sleep(wait)
	case "fill":
		chunk, _ := strconv.Atoi(args[1])
		count, _ := strconv.Atoi(args[2])
		for i := range count {
			t.add("write", os.WriteFile(fmt.Sprintf("%s/fill-%d", os.ExpandEnv(args[0]), i), make([]byte, chunk), 0o600))
			if t["write"] != "ok" {
				break
			}
		}
		if len(args) > 3 {
			time.Sleep(time.Minute)
		}
	case "spin":
		for {
		}
	case "stubborn":
		signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
		fmt.Println("ignoring")
		time.Sleep(time.Minute)
	case "daemon":
		pid, err := daemon()
		t.add("fork", err)
		t["setsid"] = os.Getenv("none")
		_ = pid
		var status unix.WaitStatus
		_, _ = unix.Wait4(pid, &status, 0, nil)
		t["setsid"] = unix.ErrnoName(syscall.Errno(status.ExitStatus()))
	case "sleep":
		fmt.Println("sleeping")
		time.Sleep(time.Minute)
	case "rlimit":
		for name, r := range map[string]int{"nofile": unix.RLIMIT_NOFILE, "data": unix.RLIMIT_DATA, "core": unix.RLIMIT_CORE, "as": unix.RLIMIT_AS} {
			t.add(name, unix.Setrlimit(r, &unix.Rlimit{Cur: 1 << 40, Max: 1 << 40}))
		}
	case "open":
		n := 0
		for ; n < 5000; n++ {
			if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
				t.add("open", err)
				break
			}
		}
		t["files"] = strconv.Itoa(n)
	case "worker":
		attackWorker(t, worker)
	case "metadata":
		t.add("chmod", unix.Chmod(outside, 0o777))
		t.add("chown", unix.Lchown(outside, os.Getuid(), os.Getgid()))
		t.add("utimes", unix.Utimes(outside, make([]unix.Timeval, 2)))
		t.add("utimensat", unix.UtimesNanoAt(unix.AT_FDCWD, outside, make([]unix.Timespec, 2), 0))
		t.add("setxattr", unix.Setxattr(outside, "user.x", []byte("y"), 0))
		t.add("truncate", unix.Truncate(outside, 0))
		t.add("unlink", unix.Unlink(outside))
		t.add("rename", unix.Rename(outside, "taken"))
		t.add("link", unix.Link(outside, "taken"))
	case "namespaces":
		t.add("unshare user", call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER))
		t.add("unshare mount", call(unix.SYS_UNSHARE, unix.CLONE_NEWNS))
		t.add("clone user", call(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD)))
		var clone3 [11]uint64
		clone3[0] = unix.CLONE_NEWUSER
		t.add("clone3", call(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&clone3)), unsafe.Sizeof(clone3)))
		t.add("setns", call(unix.SYS_SETNS, 0, 0))
	case "mounts":
		t.add("mount", unix.Mount("x", "/tmp", "tmpfs", 0, ""))
		t.add("umount", unix.Unmount("/tmp", unix.MNT_DETACH))
		t.add("pivot_root", unix.PivotRoot("/tmp", "/tmp"))
		t.add("chroot", unix.Chroot("/tmp"))
		t.add("fsopen", call(unix.SYS_FSOPEN, ptr("tmpfs"), 0))
		t.add("open_tree", call(unix.SYS_OPEN_TREE, 0, ptr("/"), 1))
		t.add("mount_setattr", unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}))
	case "x32":
		t.add("x32", call(0x40000000|unix.SYS_GETPID))
	case "int80":
		fmt.Println("trying")
		fmt.Println("pid", int80())
	case "kernel":
		t.add("io_uring", call(unix.SYS_IO_URING_SETUP, 1, 0))
		t.add("bpf", call(unix.SYS_BPF, 0, 0, 0))
		t.add("perf", call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0))
		t.add("userfaultfd", call(unix.SYS_USERFAULTFD, 1))
		t.add("keyctl", call(unix.SYS_KEYCTL, 0, 0, 0))
		t.add("add_key", call(unix.SYS_ADD_KEY, 0, 0, 0, 0, 0))
		t.add("name_to_handle_at", call(unix.SYS_NAME_TO_HANDLE_AT, 0, 0, 0, 0, 0))
		t.add("reboot", call(unix.SYS_REBOOT, 0, 0, 0))
		t.add("init_module", call(unix.SYS_INIT_MODULE, 0, 0, 0))
	case "tty":
		c := byte('x')
		t.add("TIOCSTI", call(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&c))))
		t.add("TIOCLINUX", call(unix.SYS_IOCTL, 0, 0x541c, uintptr(unsafe.Pointer(&c))))
		t.add("/dev/tty", read("/dev/tty"))
	case "mknod":
		t.add("null", unix.Mknod("null", unix.S_IFCHR|0o600, 1<<8|3))
		t.add("disk", unix.Mknod("disk", unix.S_IFBLK|0o600, 8<<8))
		t.add("fifo", unix.Mkfifo("fifo", 0o600))
	case "args":
		t["args"] = strings.Join(args, "|")
	case "sockets":
		for name, s := range map[string][3]int{
			"tcp4": {unix.AF_INET, unix.SOCK_STREAM, 0}, "tcp6": {unix.AF_INET6, unix.SOCK_STREAM, 0}, "udp": {unix.AF_INET, unix.SOCK_DGRAM, 0},
			"icmp": {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, "mptcp": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP},
			"sctp": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, "raw": {unix.AF_INET, unix.SOCK_RAW, 1},
			"packet": {unix.AF_PACKET, unix.SOCK_RAW, 0}, "netlink": {unix.AF_NETLINK, unix.SOCK_RAW, 0}, "vsock": {unix.AF_VSOCK, unix.SOCK_STREAM, 0},
			"alg": {unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, "unix": {unix.AF_UNIX, unix.SOCK_STREAM, 0},
		} {
			_, err := unix.Socket(s[0], s[1], s[2])
			t.add(name, err)
		}
	case "socketpair":
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		t.add("socketpair", err)
		if err == nil {
			_, err = unix.Write(pair[0], []byte("x"))
			t.add("write", err)
		}
	case "connect":
		for _, to := range args {
			t.add(to, connect(to))
		}
	default:
		t["attack"] = "is unknown"
	}
	_ = json.NewEncoder(os.Stdout).Encode(t)
}

// attackWorker reaches for the process that started the sandbox.
func attackWorker(t tries, worker int) {
	t.add("kill", unix.Kill(worker, 0))
	t.add("term", unix.Kill(worker, unix.SIGTERM))
	t.add("tgkill", unix.Tgkill(worker, worker, unix.SIGTERM))
	fd, err := unix.PidfdOpen(worker, 0)
	t.add("pidfd_open", err)
	t.add("pidfd_send_signal", unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0))
	t.add("ptrace", unix.PtraceAttach(worker))
	local := make([]byte, 8)
	_, err = unix.ProcessVMReadv(worker, []unix.Iovec{{Base: &local[0], Len: 8}}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
	t.add("process_vm_readv", err)
	_, err = unix.PidfdGetfd(fd, 0, 0)
	t.add("pidfd_getfd", err)
	t.add("prlimit", unix.Prlimit(worker, unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1, Max: 1}, nil))
	t.add("setpriority", unix.Setpriority(unix.PRIO_PROCESS, worker, 19))
	var set unix.CPUSet
	set.Set(0)
	t.add("sched_setaffinity", unix.SchedSetaffinity(worker, &set))
	t.add("ioprio_set", call(unix.SYS_IOPRIO_SET, 1, uintptr(worker), 0))
}

// touch makes each page of a region the process's own.
func touch(region []byte) {
	for i := 0; i < len(region); i += 4096 {
		region[i]++
	}
}

// fork starts a copy of this process that does nothing, or ends at once.
func fork(then string) (int, error) {
	ends := then == "end"
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	for pid == 0 {
		if ends {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
	return int(pid), nil
}

// daemon forks twice, in a session of its own if it can. The first child ends with the number of setsid's error.
func daemon() (int, error) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	if pid == 0 {
		_, _, failed := syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
		second, _, _ := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		for second == 0 {
			_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(failed), 0, 0)
	}
	return int(pid), nil
}

func connect(to string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var a, b, c, d byte
	var port int
	if _, err := fmt.Sscanf(to, "%d.%d.%d.%d:%d", &a, &b, &c, &d, &port); err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{a, b, c, d}})
}
