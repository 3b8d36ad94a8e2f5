package sandbox

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// File is a file that WriteAll writes.
type File struct {
	Name string
	Data []byte
}

// WriteAll writes many files or none. It checks every path and the quotas for all of them together, writes each file beside
// its place, asks begin if that is not nil, and then renames them one after the other. Before the first rename an error, that
// of begin or the end of ctx leaves everything as it was, but for folders that others use by then.
//
// The renames are not one step: a crash between two of them leaves the first files new and the others old, each whole. The
// same call again makes all of them new. So it is after an error of a rename, which is never a *PathError.
func (w *Workspace) WriteAll(ctx context.Context, files []File, begin func() error) error {
	if err := w.change(); err != nil {
		return err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	b := batch{w: w, files: files, targets: map[string]int{}, folders: map[string]bool{}}
	if err := b.check(); err != nil {
		return err
	}
	if err := b.stage(ctx, begin); err != nil {
		b.undo()
		return err
	}
	return b.commit()
}

// batch is the work of one WriteAll.
type batch struct {
	w       *Workspace
	files   []File
	paths   []string
	modes   []fs.FileMode
	targets map[string]int  // place in files, by path
	folders map[string]bool // that are missing
	temps   []string
}

// check judges all files, and the quotas for all together.
func (b *batch) check() error {
	var bytes int64
	entries := 0
	for i, f := range b.files {
		p, old, mode, err := b.w.target(f.Name, len(f.Data))
		if err != nil {
			return translate("write", f.Name, err)
		}
		if _, twice := b.targets[p]; twice {
			return &PathError{Path: f.Name, Reason: "is named twice"}
		}
		b.targets[p] = i
		b.paths, b.modes = append(b.paths, p), append(b.modes, mode)
		bytes += int64(len(f.Data))
		if old != nil {
			bytes -= old.Size()
			continue
		}
		entries++
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, err := b.w.root.Lstat(dir); err == nil {
				break
			}
			b.folders[dir] = true
		}
	}
	for i, p := range b.paths {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, also := b.targets[dir]; also {
				return &PathError{Path: b.files[i].Name, Reason: show(dir) + " is written too, as a file"}
			}
		}
	}
	if len(b.files) == 0 {
		return nil
	}
	return b.w.afford(b.files[len(b.files)-1].Name, bytes, entries+len(b.folders))
}

func (b *batch) stage(ctx context.Context, begin func() error) error {
	for i, f := range b.files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := b.w.root.MkdirAll(path.Dir(b.paths[i]), 0o700); err != nil {
			return translate("write", f.Name, err)
		}
		temp, err := b.w.stage(f.Name, b.paths[i], f.Data, b.modes[i])
		if err != nil {
			return translate("write", f.Name, err)
		}
		b.temps = append(b.temps, temp)
	}
	if begin == nil {
		return nil
	}
	return begin()
}

// undo removes what stage has made, as far as it is still its own.
func (b *batch) undo() {
	for _, temp := range b.temps {
		_ = b.w.root.Remove(temp) // if it stays, usage removes it later
	}
	made := make([]string, 0, len(b.folders))
	for dir := range b.folders {
		made = append(made, dir)
	}
	slices.SortFunc(made, func(a, b string) int { return strings.Compare(b, a) }) // what is in a folder before the folder
	for _, dir := range made {
		_ = b.w.root.Remove(dir) // an error says that it is in use, or was not made
	}
}

func (b *batch) commit() error {
	for i, temp := range b.temps {
		err := b.w.root.Rename(temp, b.paths[i])
		if err == nil {
			continue
		}
		for _, rest := range b.temps[i:] {
			_ = b.w.root.Remove(rest)
		}
		return fmt.Errorf("write %s: %w; %d of %d files were written before", show(b.files[i].Name), bare(err), i, len(b.files))
	}
	return nil
}
