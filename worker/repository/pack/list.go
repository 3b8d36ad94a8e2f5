package pack

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/strict"
)

// Errors of a commit. Their text is fit for the author of a task.
var (
	ErrNoCommit = errors.New("is no commit")
	ErrNoFolder = errors.New("is no folder of the commit")
	ErrName     = errors.New("is a name that no file of a repository may have")
	ErrTooMany  = errors.New("holds more files than may be fetched")
)

// File is a regular file of a commit.
type File struct {
	Path    string // below the folder that was listed
	Exec    bool
	Content *io.SectionReader
}

// Listing is what a folder of a commit holds, in the order of git.
type Listing struct {
	Files   []File
	LeftOut int // links, submodules, and names that no tool may use
}

// List lists the files of a folder of a commit; empty: of all of it. It looks at most names.
func (o *Objects) List(ctx context.Context, id ID, folder string, most int) (*Listing, error) {
	root, err := o.rootOf(id)
	if err != nil {
		return nil, err
	}
	w := &walk{objects: o, names: most}
	if folder != "" {
		for part := range strings.SplitSeq(folder, "/") {
			if root, err = w.find(ctx, root, part); err != nil {
				return nil, err
			}
		}
	}
	if err := w.folder(ctx, root, "", 1); err != nil {
		return nil, err
	}
	return &w.Listing, nil
}

// rootOf is the tree of a commit.
func (o *Objects) rootOf(id ID) (ID, error) {
	c, ok := o.known[id]
	switch {
	case !ok:
		return ID{}, fmt.Errorf("%w: the server did not send it", ErrMalformed)
	case c.kind != commit:
		return ID{}, fmt.Errorf("%w but a %s", ErrNoCommit, c.kind)
	}
	const field = "tree "
	line := make([]byte, len(field)+2*len(id)+1)
	if _, err := o.spool.ReadAt(line, c.at); err != nil && !errors.Is(err, io.EOF) {
		return ID{}, err
	}
	root, err := ParseID(string(line[len(field) : len(line)-1]))
	if err != nil || int64(len(line)) > c.size || !bytes.HasPrefix(line, []byte(field)) || line[len(line)-1] != '\n' {
		return ID{}, fmt.Errorf("%w: the commit has no tree", ErrMalformed)
	}
	return root, nil
}

// walk goes through folders. No name is looked at beyond the bound, so that few objects cannot stand for endless folders.
type walk struct {
	Listing

	objects *Objects
	names   int // that may be looked at still
}

// Modes of an entry of a tree.
const (
	modeFolder    = "40000"
	modeFile      = "100644"
	modeGroupFile = "100664" // of early versions of git
	modeExec      = "100755"
	modeLink      = "120000"
	modeSubmodule = "160000"
)

// entry is a name of a folder.
type entry struct {
	mode, name string
	id         ID
}

// maxName bounds a name of a folder, which git does not; maxDepth the parts of a path.
const (
	maxName  = 4096
	maxDepth = 32
)

// each hands on the entries of a folder.
func (w *walk) each(ctx context.Context, id ID, do func(*entry) error) error {
	o, ok := w.objects.known[id]
	if !ok || o.kind != tree {
		return fmt.Errorf("%w: a folder of the commit is not in it", ErrMalformed)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(w.objects.spool, o.at, o.size), maxName)
	seen := map[string]bool{}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		head, err := in.ReadSlice(0)
		switch {
		case errors.Is(err, io.EOF) && len(head) == 0:
			return nil
		case err != nil:
			return fmt.Errorf("%w: a folder cannot be read", ErrMalformed)
		}
		if w.names--; w.names < 0 {
			return ErrTooMany
		}
		mode, name, _ := strings.Cut(string(head[:len(head)-1]), " ")
		e := entry{mode: mode, name: name}
		if _, err := io.ReadFull(in, e.id[:]); err != nil {
			return fmt.Errorf("%w: a folder cannot be read", ErrMalformed)
		}
		if err := sound(name); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("%w: %s is twice in a folder", ErrMalformed, strict.Shown(name))
		}
		seen[name] = true
		if err := do(&e); err != nil {
			return err
		}
	}
}

// sound refuses names that git has in no folder, because they would lead out of it or to where git keeps its own.
func sound(name string) error {
	if name == "" || name == "." || name == ".." || strings.Contains(name, "/") || strings.EqualFold(name, ".git") {
		return fmt.Errorf("%q %w", strict.Clip(name, 64), ErrName)
	}
	return nil
}

// find is the folder of a name in a folder.
func (w *walk) find(ctx context.Context, in ID, name string) (found ID, err error) {
	ok := false
	err = w.each(ctx, in, func(e *entry) error {
		if e.name == name && e.mode == modeFolder {
			found, ok = e.id, true
		}
		return nil
	})
	if err == nil && !ok {
		err = ErrNoFolder
	}
	return found, err
}

// folder lists a folder and those below it.
func (w *walk) folder(ctx context.Context, id ID, path string, depth int) error {
	return w.each(ctx, id, func(e *entry) error {
		at := e.name
		if path != "" {
			at = path + "/" + e.name
		}
		if usable := manifest.CheckGiven(at) == nil; !usable {
			w.LeftOut++
			return nil
		}
		switch e.mode {
		case modeFolder:
			if depth >= maxDepth {
				w.LeftOut++
				return nil
			}
			return w.folder(ctx, e.id, at, depth+1)
		case modeFile, modeGroupFile, modeExec:
			o, ok := w.objects.known[e.id]
			if !ok || o.kind != blob {
				return fmt.Errorf("%w: the content of %s is not in it", ErrMalformed, strict.Shown(at))
			}
			w.Files = append(w.Files, File{at, e.mode == modeExec, io.NewSectionReader(w.objects.spool, o.at, o.size)})
		case modeLink, modeSubmodule:
			w.LeftOut++
		default:
			return fmt.Errorf("%w: %s is of the kind %q", ErrMalformed, strict.Shown(at), strict.Clip(e.mode, 16))
		}
		return nil
	})
}
