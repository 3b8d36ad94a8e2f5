package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrMore comes with a List that left something out: the workspace has more entries or deeper folders than its
// limits let List look at.
var ErrMore = errors.New("the workspace has more files than were listed")

// List returns the paths of all regular files, sorted, with slashes, whatever folder they are in. It shows neither
// links nor what is on another file system nor files that are just being written. With ErrMore it returns what it
// has seen. Names that other programs made may hold newlines or invalid UTF-8.
func (w *Workspace) List(ctx context.Context) ([]string, error) {
	if err := w.ready(); err != nil {
		return nil, err
	}
	var names []string
	more, err := w.walk(w.limits.Listed, func(p string, d fs.DirEntry) error {
		if d.Type().IsRegular() && !isTemp(p) {
			names = append(names, p)
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("list workspace: %w", err)
	}
	slices.Sort(names)
	if more {
		return names, ErrMore
	}
	return names, nil
}

type usage struct {
	bytes   int64
	entries int
	more    bool // it could not count everything
}

// usage counts what the quotas bound, and removes what crashed writes left.
func (w *Workspace) usage() (usage, error) {
	limit := w.limits.Files
	if limit < 0 {
		limit = int(^uint(0) >> 1)
	}
	var u usage
	more, err := w.walk(limit, func(p string, d fs.DirEntry) error {
		u.entries++
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := w.root.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return bare(err)
		}
		if isTemp(p) && time.Since(info.ModTime()) > staleTemp {
			u.entries--
			return bare(ignoreMissing(w.root.Remove(p)))
		}
		u.bytes += info.Size()
		return nil
	})
	u.more = more
	return u, err
}

// walk visits every entry at most once, folders before what is in them, and follows no link. It reports whether there
// are more entries than limit or deeper ones than a path may name.
func (w *Workspace) walk(limit int, visit func(p string, d fs.DirEntry) error) (more bool, err error) {
	type folder struct {
		path  string
		depth int
	}
	for open := []folder{{".", 0}}; len(open) > 0; {
		dir := open[len(open)-1]
		open = open[:len(open)-1]
		entries, err := w.entries(dir.path, limit)
		if err != nil {
			return false, err
		}
		over := len(entries) > limit
		if over {
			entries = entries[:limit]
		}
		limit -= len(entries)
		for _, d := range entries {
			p := path.Join(dir.path, d.Name())
			if err := visit(p, d); err != nil {
				return false, err
			}
			switch {
			case !d.IsDir():
			case dir.depth+1 >= w.limits.Depth:
				more = true
			default:
				open = append(open, folder{p, dir.depth + 1})
			}
		}
		if over {
			return true, nil
		}
	}
	return more, nil
}

// entries reads a folder, and no more than one entry over the limit. A folder that has gone, that has become
// something else, that may not be read or that is on another file system has none.
func (w *Workspace) entries(dir string, limit int) ([]fs.DirEntry, error) {
	f, err := w.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if _, ok := errors.AsType[*PathError](translate("open", dir, err)); ok {
			return nil, nil
		}
		return nil, fmt.Errorf("open folder %s: %w", show(dir), bare(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open folder %s: %w", show(dir), bare(err))
	}
	if idOf(info).device != w.device {
		return nil, nil
	}
	const batch = 512
	var all []fs.DirEntry
	for len(all) <= limit {
		some, err := f.ReadDir(min(batch, limit-len(all)+1))
		all = append(all, some...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read folder %s: %w", show(dir), bare(err))
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}
