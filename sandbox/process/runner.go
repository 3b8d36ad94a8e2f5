package process

import (
	"context"
	"net"
	"time"

	"github.com/longshore-run/longshore/sandbox"
)

// Runner runs programs that are not trusted. [Native] is one; docs/sandbox.md describes one on Kubernetes.
type Runner interface {
	// Run runs a program and waits until it and all that it started have ended. How the program ended is in the Result;
	// an error means that it did not run, or that the platform failed: a [CommandError] if the command is wrong, an
	// [UnavailableError] if it cannot be confined as required, what Begin returned, the cause of ctx. When ctx ends while the
	// program runs, the program is killed and the Result, with [Canceled], says how far it came.
	Run(ctx context.Context, c Command) (Result, error)
	// Layers returns what the self-test proved: what each program is confined by.
	Layers() Layers
}

// Command is one program to run. Only Path is required.
type Command struct {
	Path string   // An absolute path, or a name that is looked up in the folders of [Config.Path].
	Args []string // The arguments after the name. No shell reads them.

	// Env is what the program gets as NAME=value besides PATH, HOME, TMPDIR and LANG, which it may replace, and the names of
	// the proxy.
	Env []string
	Dir string // The working directory, below the workspace. Empty: the workspace itself.

	Stdin     []byte             // Nil: empty input.
	Workspace *sandbox.Workspace // Nil: no files but the temporary folder, which is the working directory then.
	ReadOnly  []string           // Files and folders of the host that the program may read and execute, besides [Config.ReadOnly].

	// Proxy serves the only connections that the program can make, to an address that http_proxy and the like name. It is
	// called once, in a goroutine, and must return soon after the listener is closed, which happens when the program has ended:
	// the Serve method of an http.Server does. Run waits for it. Nil: no network. A Proxy needs [LayerNamespaces]; without, Run
	// returns an [UnavailableError].
	Proxy func(net.Listener) error

	Limits  Limits // Zero fields: those of [Config.Limits].
	Require Layers // Run refuses when one of these is missing.

	// Output is called with what the program writes, as it comes, from one goroutine at a time, for at most Limits.Output
	// bytes. The slice is valid during the call. Run waits for it: a slow Output slows the program down.
	Output func(Stream, []byte)
	// Begin is called once, when everything is ready and before the program starts. After an error the program never starts. It may
	// still not start if the kernel refuses to execute the file, which is a [CommandError].
	Begin func() error
}

// Stream is where a program wrote something.
type Stream uint8

// The streams of a program.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// String returns "stdout" or "stderr".
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// Result says how a program ended.
type Result struct {
	ExitCode  int    // The exit code; -1 after a signal.
	Signal    string // The signal that ended the program, such as "SIGKILL". Empty: it exited.
	Reason    Reason
	Stdout    []byte // What it wrote, the beginning up to Limits.Output for both together.
	Stderr    []byte
	Truncated bool // It wrote more.
	Usage     Usage
	Layers    Layers // What it was confined by.
}

// Reason is why a program ended.
type Reason string

// The reasons for which programs end.
const (
	Exited      Reason = "exited"       // By itself, with whatever exit code or signal.
	Timeout     Reason = "timeout"      // Limits.Wall was over.
	CPULimit    Reason = "cpu_limit"    // Limits.CPU was used up.
	MemoryLimit Reason = "memory_limit" // Its processes together had more than Limits.Memory. To a process alone more is refused.
	FileLimit   Reason = "file_limit"   // It wrote a file larger than Limits.FileSize.
	DiskLimit   Reason = "disk_limit"   // The workspace, or the temporary folder, held more than it may.
	OutputLimit Reason = "output_limit" // It wrote more than Limits.Output.
	Canceled    Reason = "canceled"     // The context ended.
	Violation   Reason = "violation"    // It was killed for a system call that is never allowed.
)

// Usage is what a program and the children that it waited for used.
type Usage struct {
	Wall   time.Duration // From its start to its end.
	CPU    time.Duration // User and system time.
	Memory int64         // Bytes: the largest resident set of one of its processes. 0: not known, see docs/tools/shell.md.
}
