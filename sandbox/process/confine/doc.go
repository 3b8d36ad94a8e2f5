// Package confine is the child of package process: the same executable, started again under the name [Name], which confines
// itself as its parent says and becomes the program.
//
// It is a leaf with few imports, and begins in its init function: the other packages of a large program take longer to
// initialise than everything that is done here. It links the standard library alone, because Go initialises packages in the order of
// their paths: golang.org/x/sys comes after github.com.
package confine

// Name is the name (argv[0]) under which the child is started, without arguments.
const Name = "longshore-sandbox"

// Where the child finds what its parent hands over.
const (
	ControlFD   = 3 // A stream socket on which the child is told what to do, and reports.
	WorkspaceFD = 4 // The workspace's folder, if there is one.
)

// What a program sees in namespaces.
const (
	WorkspaceAt = "/workspace"
	TempAt      = "/tmp"
	ID          = 1000 // Its user and its group.
	ProxyPort   = 3128 // Where the proxy listens on 127.0.0.1.
)

// FailedCode is the exit code of a child that could not confine itself.
const FailedCode = 125
