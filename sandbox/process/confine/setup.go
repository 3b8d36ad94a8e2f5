package confine

import "syscall"

// Setup is what the parent tells the child first.
type Setup struct {
	// What confines the program. All are set but in self-tests, which try each alone; Namespaces says that the child was started in
	// namespaces of its own.
	Namespaces bool
	Landlock   bool
	Limits     bool
	ABI        int    // Of Landlock: what may be asked of this kernel.
	Filter     []byte // Of system calls, as the kernel takes it.

	Path string
	Args []string // The name first.
	Env  []string

	Workspace string // Its path in the parent's mount namespace. Empty: none.
	Device    uint64 // Of its folder, which may have been replaced.
	Inode     uint64
	Dir       string // Below the workspace.
	ReadOnly  []string
	Temp      string // The temporary folder, if there are no namespaces.
	TempSize  int64  // Bytes of that in namespaces.
	Proxy     bool
	Rlimits   []Rlimit
	MaxPID    int // In namespaces: the numbers of processes are below it. 0: as the host has it.

	Probe *Probe // Try to break out instead of running a program.
}

// Rlimit is a resource limit, soft and hard.
type Rlimit struct {
	Resource  int
	Soft, Max uint64
}

// Probe says what a self-test tries to reach.
type Probe struct {
	Canary string // A file of the parent's.
	Parent int    // Its process.
}

// Tried is the outcome of each attempt of a self-test: the error of the kernel, 0 if it succeeded.
type Tried struct {
	Read   syscall.Errno `json:"read"`
	Write  syscall.Errno `json:"write"`
	Kill   syscall.Errno `json:"kill"`
	Socket syscall.Errno `json:"socket"`
	Ring   syscall.Errno `json:"ring"` // An io_uring.
	Fork   syscall.Errno `json:"fork"`
	Files  syscall.Errno `json:"files"` // More than it may.

	PID int `json:"pid"` // The child's own.
}

// Ended is how a program ended that the child waited for.
type Ended struct {
	Code   int   `json:"code"`
	Signal int   `json:"signal"`
	CPU    int64 `json:"cpu"`    // Nanoseconds.
	Memory int64 `json:"memory"` // Bytes.
}

// Failed is what the child could not do.
type Failed struct {
	Step  string `json:"step"`
	Errno int    `json:"errno"` // 0: unknown.
	Text  string `json:"text"`
}

// StepDir is the step of a child that fails if the working directory does not exist.
const StepDir = "enter folder"

// Kind is the first byte of a frame on the control socket. A frame is its kind, the length of its payload in four bytes, big
// endian, and the payload in JSON, which may be empty.
type Kind byte

// The frames, in the order in which they are sent.
const (
	KindSetup     Kind = 's' // Parent: Setup.
	KindListener  Kind = 'l' // Child: hands over the proxy's listener.
	KindReady     Kind = 'r' // Child: it is confined, and waits.
	KindGo        Kind = 'g' // Parent: start the program.
	KindTried     Kind = 'p' // Child: Tried, instead of KindReady.
	KindTerminate Kind = 't' // Parent: send SIGTERM to the program and its children.
	KindEnded     Kind = 'e' // Child: Ended. Without namespaces the child becomes the program and reports nothing.
	KindFailed    Kind = 'f' // Child: Failed.
)

// HeaderSize is that of a frame before its payload, and MaxFrame the largest payload.
const (
	HeaderSize = 5
	MaxFrame   = 8 << 20
)
