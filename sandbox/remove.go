package sandbox

import (
	"errors"
	"io/fs"
	"syscall"
)

// Remove removes a regular file, however large, or an empty folder. There is no way to remove a folder with what is in it.
func (w *Workspace) Remove(name string) error {
	if err := w.change(); err != nil {
		return err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	err := w.remove(name)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
		return &PathError{Path: name, Reason: "is a folder that is not empty", err: bare(err)}
	}
	if err != nil {
		return translate("remove", name, err)
	}
	return nil
}

func (w *Workspace) remove(name string) error {
	p, info, err := w.find(name)
	switch {
	case err != nil:
		return err
	case info == nil:
		return fs.ErrNotExist
	case !info.IsDir():
		if err := w.own(name, info); err != nil {
			return err
		}
	case idOf(info).device != w.device:
		return &PathError{Path: name, Reason: otherDevice}
	}
	return w.root.Remove(p)
}
