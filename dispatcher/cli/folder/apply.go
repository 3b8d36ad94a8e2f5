package folder

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages/manifest"
)

func (b *Back) sort() {
	slices.SortFunc(b.Changes, func(a, c Change) int { return cmp.Or(cmp.Compare(a.Kind, c.Kind), strings.Compare(a.Path, c.Path)) })
}

// Apply makes the changes that nothing stands in the way of, and those that conflict if told to. All files are fetched first, and verified;
// then each takes its place at once. When ctx ends meanwhile, or something fails, the folder is as it was; if not even that could be done, the
// error says where the files are. A file that has changed since Compare is an error.
func (b *Back) Apply(ctx context.Context, client *dispatcher.Client, overwrite bool) error {
	tmp := temporary + rand.Text()
	root := b.folder.root
	if err := root.Mkdir(tmp, 0o700); err != nil {
		return fmt.Errorf("make a folder for what is fetched: %w", err)
	}
	w := &writing{root: root, tmp: tmp}
	if err := b.apply(ctx, client, w, overwrite); err != nil {
		return w.undo(err)
	}
	return root.RemoveAll(tmp)
}

func (b *Back) apply(ctx context.Context, client *dispatcher.Client, w *writing, overwrite bool) error {
	var todo []Change
	for _, c := range b.Changes {
		if c.made(overwrite) {
			todo = append(todo, c)
		}
	}
	for i := range todo {
		if todo[i].Kind == Removed {
			continue
		}
		if err := b.fetch(ctx, client, own(w.tmp, "new", i), &todo[i]); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i := range todo {
		if err := b.make(w, i, &todo[i], overwrite); err != nil {
			return err
		}
	}
	return nil
}

// fetch writes a file of the run to a place of our own.
func (b *Back) fetch(ctx context.Context, client *dispatcher.Client, to string, c *Change) (err error) {
	perm := fs.FileMode(0o644)
	if c.Exec {
		perm = 0o755
	}
	file, err := b.folder.root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return fmt.Errorf("write %s: %w", c.Path, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	got, err := client.Files().Get(ctx, b.run, c.Path, dispatcher.FilesAt{Manifest: b.list}, &bounded{file, c.Size})
	switch {
	case err != nil:
		return fmt.Errorf("fetch %s: %w", c.Path, err)
	case got.Hash != c.Hash:
		return fmt.Errorf("fetch %s: the file that came is not the one in the list", c.Path)
	default:
		return nil
	}
}

// bounded takes no more than was announced.
type bounded struct {
	w    io.Writer
	left int64
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errors.New("it is larger than the list says")
	}
	return b.w.Write(p)
}

// make makes a change, if the folder still is as it was compared.
func (b *Back) make(w *writing, i int, c *Change, overwrite bool) error {
	now, err := b.folder.at(c.Path)
	was, _ := b.folder.Files.Find(c.Path)
	switch {
	case err != nil:
		return fmt.Errorf("write %s: %w", c.Path, err)
	case now != nil && now.Hash == "":
		return fmt.Errorf("write %s: something other than a regular file is in its place", c.Path)
	case !overwrite && !same(now, was):
		return fmt.Errorf("write %s: it was changed here meanwhile: run `longshore files get` for it", c.Path)
	}
	if now != nil {
		if err := w.permit(i, c); err != nil {
			return fmt.Errorf("write %s: %w", c.Path, err)
		}
		if err := w.keep(i, c.Path); err != nil {
			return fmt.Errorf("write %s: %w", c.Path, err)
		}
	}
	if c.Kind == Removed {
		err = w.remove(c.Path)
	} else {
		err = w.place(own(w.tmp, "new", i), c.Path, now == nil)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", c.Path, err)
	}
	return nil
}

// same reports whether a file is as it was; the zero File stands for none.
func same(now *manifest.File, was manifest.File) bool {
	if now == nil {
		return was == manifest.File{}
	}
	return *now == was
}

// writing is what was done so far, so that it can be undone.
type writing struct {
	root *os.Root
	tmp  string
	done []func() error
}

// permit gives what replaces a file the permissions of that file, but for who may execute it.
func (w *writing) permit(i int, c *Change) error {
	if c.Kind == Removed {
		return nil
	}
	info, err := w.root.Lstat(c.Path)
	if err != nil {
		return err
	}
	perm := info.Mode().Perm() &^ 0o111
	if c.Exec {
		perm |= perm & 0o444 >> 2 // by those who may read it
	}
	return w.root.Chmod(own(w.tmp, "new", i), perm)
}

// keep keeps a file as it is under another name.
func (w *writing) keep(i int, name string) error {
	old := own(w.tmp, "old", i)
	if err := w.root.Link(name, old); err != nil { // a file system without such links
		if err := w.root.Rename(name, old); err != nil {
			return err
		}
	}
	w.done = append(w.done, func() error { return w.root.Rename(old, name) })
	return nil
}

func (w *writing) remove(name string) error {
	if err := w.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// place moves a file to its place, in one step.
func (w *writing) place(from, name string, fresh bool) error {
	for dir := range parents(name) {
		switch err := w.root.Mkdir(dir, 0o755); {
		case err == nil:
			w.done = append(w.done, func() error { return w.root.Remove(dir) })
		case !errors.Is(err, fs.ErrExist):
			return err
		}
		info, err := w.root.Lstat(dir)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return errInTheWay
		}
	}
	if err := w.root.Rename(from, path.Clean(name)); err != nil {
		return err
	}
	if fresh {
		w.done = append(w.done, func() error { return w.root.Remove(name) })
	}
	return nil
}

// undo makes the folder as it was, and returns why with what became of it. Files that could not be put back stay where they are kept.
func (w *writing) undo(why error) error {
	var failed error
	for _, back := range slices.Backward(w.done) {
		failed = errors.Join(failed, back())
	}
	if failed != nil {
		return fmt.Errorf("%w; the folder could not be made as it was: %w: what it had is in its folder %s", why, failed, w.tmp)
	}
	return errors.Join(fmt.Errorf("%w: the folder is as it was", why), w.root.RemoveAll(w.tmp))
}
