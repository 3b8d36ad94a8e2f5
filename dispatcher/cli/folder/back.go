package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
)

// Kind is what a run did to a file.
type Kind string

// Kinds.
const (
	Added   Kind = "added"
	Changed Kind = "changed"
	Removed Kind = "removed"
)

// Change is what a run did to a file, and what stands in its way.
type Change struct {
	Kind
	manifest.File // as it is afterwards; of one that was removed, as it was uploaded

	Conflict string // why it is not made without being told to; empty: nothing is in its way
	Refused  string // why it is never made
}

// Back is what a run has changed in a folder.
type Back struct {
	Changes []Change // sorted by kind and path, without those that are in the folder already

	folder       *Folder
	run          messages.Ref
	list         string
	repositories repositories // with what the run has left
}

// Count returns how many changes can be made, with those that conflict if told to.
func (b *Back) Count(overwrite bool) (n int) {
	for i := range b.Changes {
		if b.Changes[i].made(overwrite) {
			n++
		}
	}
	return n
}

func (c *Change) made(overwrite bool) bool {
	return c.Refused == "" && (c.Conflict == "" || overwrite)
}

// Compare asks what a run has left and compares it with what was uploaded, and with what the folder has now.
func (f *Folder) Compare(ctx context.Context, client *dispatcher.Client, run messages.Ref) (*Back, error) {
	b := &Back{folder: f, run: run}
	list, err := client.Files().List(ctx, run, dispatcher.FilesAt{})
	if errors.Is(err, dispatcher.ErrNotBegun) || err == nil && list.Manifest == "" { // it saved nothing
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the files of the run: %w", err)
	}
	left, err := checked(list)
	if err != nil {
		return nil, fmt.Errorf("list the files of the run: %w", err)
	}
	b.list, b.repositories = list.Manifest, f.repositories(left)
	changes := manifest.Compare(f.Files, left)
	for kind, files := range map[Kind][]manifest.File{Added: changes.Added, Changed: changes.Changed, Removed: changes.Removed} {
		for _, file := range files {
			if err := b.add(kind, file); err != nil {
				return nil, err
			}
		}
	}
	b.sort()
	return b, nil
}

// checked is a list as a manifest: what the fleet answers must be one.
func checked(list *control.FileList) (*manifest.Manifest, error) {
	m := &manifest.Manifest{}
	for _, f := range list.Files {
		m.Files = append(m.Files, manifest.File{Path: f.Name, Size: f.Size, Hash: f.Hash, Exec: f.Exec})
	}
	data, _, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return manifest.Decode(data)
}

// add notes a change, unless the folder has it already.
func (b *Back) add(kind Kind, file manifest.File) error {
	c := Change{Kind: kind, File: file}
	was, uploaded := b.folder.Files.Find(file.Path)
	now, err := b.folder.at(file.Path)
	switch why := b.folder.rules.leavesOut(file.Path); {
	case errors.Is(err, errInTheWay):
		c.Refused = err.Error()
	case err != nil:
		return fmt.Errorf("look at %s: %w", file.Path, err)
	case why != "":
		c.Refused = why
	case kind != Removed && b.repositories.have(file.Path):
		c.Refused = whyRepository
	case kind == Removed && now == nil, kind != Removed && now != nil && *now == file:
		return nil
	case now != nil && now.Hash == "":
		c.Refused = "something other than a regular file is in its place"
	case kind == Added && now != nil:
		c.Conflict = "it is in the folder too, and was not uploaded"
	case uploaded && now == nil:
		c.Conflict = "it was removed here meanwhile"
	case uploaded && *now != was:
		c.Conflict = "it was changed here meanwhile"
	}
	b.Changes = append(b.Changes, c)
	return nil
}

// errInTheWay is what a folder has where a file would have its parents.
var errInTheWay = errors.New("a link or a file is in place of a folder of its path")

// at is a file as it is now, all of whose parents must be folders; nil: there is none.
func (f *Folder) at(name string) (*manifest.File, error) {
	for dir := range parents(name) {
		info, err := f.root.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, err
		case !info.IsDir():
			return nil, errInTheWay
		}
	}
	return f.now(name)
}

// parents yields the folders of a path, from the top.
func parents(name string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i, r := range name {
			if r == '/' && !yield(name[:i]) {
				return
			}
		}
	}
}

// own is the name of what Apply keeps in a folder of its own.
func own(dir, kind string, n int) string { return path.Join(dir, fmt.Sprintf("%s-%d", kind, n)) }

// temporary begins the name of the folder in which Apply collects what it is to write.
const temporary = ".longshore-"
