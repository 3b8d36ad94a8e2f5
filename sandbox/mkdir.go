package sandbox

import (
	"fmt"
	"path"
)

// Mkdir makes a folder and those above it that are missing, for their owner alone. One that is there already is no error.
// A folder may have one part less than a file, so that a file fits into it.
func (w *Workspace) Mkdir(name string) error {
	if err := w.change(); err != nil {
		return err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.mkdir(name); err != nil {
		return translate("make folder", name, err)
	}
	return nil
}

func (w *Workspace) mkdir(name string) error {
	p, info, err := w.find(name)
	switch {
	case err != nil:
		return err
	case info != nil && !info.IsDir():
		return &PathError{Path: name, Reason: "exists already and is not a folder"}
	case info != nil && idOf(info).device != w.device:
		return &PathError{Path: name, Reason: otherDevice}
	case info != nil:
		return nil
	}
	// A folder with as many parts as a path may have would hold what can be neither named nor counted.
	if _, err := clean(path.Join(p, "x"), w.limits.Depth); err != nil {
		return &PathError{Path: name, Reason: fmt.Sprintf("a folder must not have more than %d parts", w.limits.Depth-1)}
	}
	if err := w.afford(name, 0, w.missing(p)); err != nil {
		return err
	}
	return w.root.MkdirAll(p, 0o700)
}
