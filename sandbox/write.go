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
	if err := w.change(); err != nil {
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
	p, old, mode, err := w.target(name, len(data))
	if err != nil {
		return err
	}
	bytes, entries := int64(len(data)), 0
	if old != nil {
		bytes -= old.Size()
	} else {
		entries = 1 + w.missing(path.Dir(p))
	}
	if err := w.afford(name, bytes, entries); err != nil {
		return err
	}
	if err := w.root.MkdirAll(path.Dir(p), 0o700); err != nil {
		return err
	}
	temp, err := w.stage(name, p, data, mode)
	if err != nil {
		return err
	}
	if err := w.root.Rename(temp, p); err != nil {
		return errors.Join(err, ignoreMissing(w.root.Remove(temp)))
	}
	return nil
}

// target looks up the path of a file of size bytes that is about to be written: what it replaces, nil for nothing, and the
// mode that it gets.
func (w *Workspace) target(name string, size int) (p string, old fs.FileInfo, mode fs.FileMode, err error) {
	if int64(size) > w.limits.FileSize {
		if _, err := clean(name, w.limits.Depth); err != nil {
			return "", nil, 0, err
		}
		return "", nil, 0, &PathError{Path: name, Reason: fmt.Sprintf(
			"the content has %d bytes, and a file may have %d", size, w.limits.FileSize)}
	}
	if p, old, err = w.find(name); err != nil || old == nil {
		return p, nil, 0o600, err
	}
	if err := w.own(name, old); err != nil { // a larger file may be replaced by one that fits
		return "", nil, 0, err
	}
	return p, old, old.Mode().Perm(), nil
}

// afford checks the quotas for so many more bytes and so many more files and folders.
func (w *Workspace) afford(name string, bytes int64, entries int) error {
	if w.limits.Total < 0 && w.limits.Files < 0 {
		return nil
	}
	used, err := w.usage()
	if err != nil {
		return fmt.Errorf("count the workspace: %w", err)
	}
	if w.limits.Total >= 0 && used.bytes+bytes > w.limits.Total {
		return &PathError{Path: name, Reason: fmt.Sprintf(
			"the workspace is full: all files together may have %d bytes", w.limits.Total)}
	}
	if used.more || w.limits.Files >= 0 && used.entries+entries > w.limits.Files {
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

// stage writes a temporary file beside p, to be renamed to it.
func (w *Workspace) stage(name, p string, data []byte, mode fs.FileMode) (temp string, err error) {
	temp = path.Join(path.Dir(p), TempPrefix+rand.Text())
	f, err := w.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if err = errors.Join(w.fill(f, name, data, mode), f.Close()); err != nil {
		return "", errors.Join(err, ignoreMissing(w.root.Remove(temp)))
	}
	return temp, nil
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

func isTemp(p string) bool { return strings.HasPrefix(path.Base(p), TempPrefix) }
