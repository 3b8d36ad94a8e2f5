package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// staleTemp is how old the temporary file of a write must be to be taken for the leftover of a crash. No write of
// a file of limited size takes as long.
const staleTemp = time.Hour

// Write makes a file hold data, whether it exists or not; missing folders are made. A reader sees the old content
// or the new, never a part, and so does everyone after a crash; after a loss of power it may be the old one although
// Write had returned. A replaced file keeps its permissions.
//
// Quotas are counted before each write. Two Workspace values of one folder may together exceed them by the writes
// that they make at the same time.
func (w *Workspace) Write(name string, data []byte) error {
	if err := w.ready(); err != nil {
		return err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.write(name, data); err != nil {
		return translate("write", name, err)
	}
	return nil
}

func (w *Workspace) write(name string, data []byte) error {
	if int64(len(data)) > w.limits.FileSize {
		if _, err := clean(name, w.limits.Depth); err != nil {
			return err
		}
		return &PathError{Path: name, Reason: fmt.Sprintf(
			"the content has %d bytes, and a file may have %d", len(data), w.limits.FileSize)}
	}
	p, old, err := w.find(name)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if old != nil {
		// A larger file may be replaced by one that fits.
		if err := w.admit(name, old); err != nil && old.Size() <= w.limits.FileSize {
			return err
		}
		mode = old.Mode().Perm()
	}
	if err := w.afford(name, p, old, len(data)); err != nil {
		return err
	}
	if err := w.root.MkdirAll(path.Dir(p), 0o700); err != nil {
		return err
	}
	return w.replace(name, p, data, mode)
}

// afford checks the quotas for a write of size bytes.
func (w *Workspace) afford(name, p string, old fs.FileInfo, size int) error {
	if w.limits.Total < 0 && w.limits.Files < 0 {
		return nil
	}
	used, err := w.usage()
	if err != nil {
		return fmt.Errorf("count the workspace: %w", err)
	}
	total, files := used.bytes+int64(size), used.entries
	if old != nil {
		total -= old.Size()
	} else {
		files += 1 + w.missing(path.Dir(p))
	}
	if w.limits.Total >= 0 && total > w.limits.Total {
		return &PathError{Path: name, Reason: fmt.Sprintf(
			"the workspace is full: all files together may have %d bytes", w.limits.Total)}
	}
	if used.more || w.limits.Files >= 0 && files > w.limits.Files {
		return &PathError{Path: name, Reason: fmt.Sprintf(
			"the workspace is full: it may have %d files and folders, %d deep", w.limits.Files, w.limits.Depth)}
	}
	return nil
}

// missing counts the folders of dir that a write will have to make.
func (w *Workspace) missing(dir string) int {
	n := 0
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := w.root.Lstat(dir); err == nil {
			break
		}
		n++
	}
	return n
}

// replace writes a temporary file beside p and renames it.
func (w *Workspace) replace(name, p string, data []byte, mode fs.FileMode) (err error) {
	temp := path.Join(path.Dir(p), tempPrefix+rand.Text())
	f, err := w.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(w.root.Remove(temp)))
		}
	}()
	if err := w.fill(f, name, data, mode); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return w.root.Rename(temp, p)
}

func (w *Workspace) fill(f *os.File, name string, data []byte, mode fs.FileMode) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if idOf(info).device != w.device {
		return &PathError{Path: name, Reason: otherDevice}
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if mode != info.Mode().Perm() {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	return f.Sync()
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func isTemp(p string) bool { return strings.HasPrefix(path.Base(p), tempPrefix) }
