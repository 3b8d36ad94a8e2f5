package sandbox

import (
	"fmt"
	"os"

	"github.com/longshore-run/longshore/messages"
)

// Workspaces keeps the folders of all runs of a worker, <root>/<tenant>/<run>. Safe for concurrent use. On a file
// system that ignores case, runs whose names differ in nothing else share a folder.
type Workspaces struct {
	root   *os.Root
	limits Limits
}

// NewWorkspaces opens the folder that holds the runs' folders, and creates it, for its owner alone, when it is
// missing. The limits are those of each workspace.
func NewWorkspaces(dir string, l Limits) (*Workspaces, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create workspaces: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspaces: %w", err)
	}
	return &Workspaces{root: root, limits: l}, nil
}

// Open returns a run's workspace. Its folder is opened, and created when it is missing, at the first use: most calls
// of most tools touch no file. A name that is not a valid token is a *messages.FieldError. The caller closes it.
func (w *Workspaces) Open(run messages.Ref) (*Workspace, error) {
	if err := run.Check(); err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	return OpenLater(func() (*os.Root, error) {
		if err := w.root.MkdirAll(run.Folder(), 0o700); err != nil {
			return nil, err
		}
		return w.root.OpenRoot(run.Folder())
	}, w.limits), nil
}

// Close ends the use of the root folder. Workspaces that are open stay so.
func (w *Workspaces) Close() error {
	if err := w.root.Close(); err != nil {
		return fmt.Errorf("close workspaces: %w", bare(err))
	}
	return nil
}

// InPlace lets every run work in one given folder, as it is. The folder is its owner's, not the run's: without a
// limit on Total or Files there is no quota.
func InPlace(dir string, l Limits) func(messages.Ref) (*Workspace, error) {
	if l.Total == 0 {
		l.Total = -1
	}
	if l.Files == 0 {
		l.Files = -1
	}
	return func(messages.Ref) (*Workspace, error) { return Open(dir, l) }
}
