package sandbox

import (
	"fmt"
	"os"
)

// Folder opens the workspace's folder itself, for a program that is confined to it by other means, and may change all in it. The
// caller closes it.
func (w *Workspace) Folder() (*os.File, error) {
	if err := w.change(); err != nil {
		return nil, err
	}
	f, err := w.root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", bare(err))
	}
	return f, nil
}

// Overfull reports whether the workspace holds more than its limits allow: programs write without asking.
func (w *Workspace) Overfull() (bool, error) {
	if err := w.ready(); err != nil {
		return false, err
	}
	if w.limits.Total < 0 && w.limits.Files < 0 {
		return false, nil
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	u, err := w.usage()
	if err != nil {
		return false, fmt.Errorf("measure workspace: %w", err)
	}
	return u.more || w.limits.Total >= 0 && u.bytes > w.limits.Total || w.limits.Files >= 0 && u.entries > w.limits.Files, nil
}
