package sandbox

import (
	"io/fs"
	"path"
)

// Move gives a regular file another path; missing folders are made. Nothing may be there yet. After a crash the file is at
// one of the two. Another program, or another Workspace of the folder, that makes a file there at the same moment loses it.
func (w *Workspace) Move(from, to string) error {
	if err := w.change(); err != nil {
		return err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	source, info, err := w.find(from)
	if err == nil && info == nil {
		err = fs.ErrNotExist
	}
	if err == nil {
		err = w.own(from, info)
	}
	if err != nil {
		return translate("move", from, err)
	}
	if err := w.move(source, to); err != nil {
		return translate("move to", to, err)
	}
	return nil
}

func (w *Workspace) move(source, to string) error {
	p, there, err := w.find(to)
	if err != nil {
		return err
	}
	if there != nil {
		return &PathError{Path: to, Reason: "exists already"}
	}
	dir := path.Dir(p)
	if n := w.missing(dir); n > 0 {
		if err := w.afford(to, 0, n); err != nil {
			return err
		}
		if err := w.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return w.root.Rename(source, p)
}
