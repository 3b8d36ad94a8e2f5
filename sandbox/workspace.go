package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Workspace is a run's folder; nothing outside can be named through it. Symbolic links are neither followed nor
// listed. Safe for concurrent use.
type Workspace struct {
	limits Limits

	opening sync.Once // the fields below are set by it
	open    func() (*os.Root, error)
	unlock  func() error // of a shared workspace; nil: not shared
	root    *os.Root
	device  uint64
	err     error

	writing sync.Mutex  // a write must see what the one before it left of the quota
	touched atomic.Bool // see Touched
}

// Open opens a folder as a workspace and creates it, for its owner alone, when it is missing. The workspace stays
// with the folder when that is renamed.
func Open(dir string, l Limits) (*Workspace, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create workspace: %w", err)
	}
	w := &Workspace{limits: l.withDefaults(), open: func() (*os.Root, error) { return os.OpenRoot(dir) }}
	return w, w.ready()
}

// OpenLater is Open of a folder that is made and opened at the first use. An error of it is that of every use.
func OpenLater(open func() (*os.Root, error), l Limits) *Workspace {
	return &Workspace{limits: l.withDefaults(), open: open}
}

// Touched reports whether its files may have been changed through this Workspace, or through its Folder, since Touch last set it
// to false.
func (w *Workspace) Touched() bool { return w.touched.Load() }

// Touch sets what Touched reports.
func (w *Workspace) Touch(touched bool) { w.touched.Store(touched) }

// change is ready for what may change a file.
func (w *Workspace) change() error {
	if err := w.ready(); err != nil {
		return err
	}
	w.touched.Store(true)
	return nil
}

// ready opens the folder, once: a run whose tools touch no files has none.
func (w *Workspace) ready() error {
	w.opening.Do(func() {
		root, err := w.open()
		if err != nil {
			w.err = fmt.Errorf("open workspace: %w", bare(err))
			return
		}
		info, err := root.Stat(".")
		if err != nil {
			w.err = errors.Join(fmt.Errorf("open workspace: %w", bare(err)), root.Close())
			return
		}
		w.root, w.device = root, idOf(info).device
	})
	return w.err
}

// Close ends the use of the folder; its files stay. Calls after it fail with an error that wraps os.ErrClosed. A nil
// Workspace, of a run without files, may be closed.
func (w *Workspace) Close() error {
	if w == nil {
		return nil
	}
	w.opening.Do(func() { w.err = fmt.Errorf("open workspace: %w", os.ErrClosed) })
	if w.unlock != nil {
		defer func() { _ = w.unlock() }() // again it is an error that tells nothing
	}
	if w.root == nil {
		return nil
	}
	if err := w.root.Close(); err != nil {
		return fmt.Errorf("close workspace: %w", bare(err))
	}
	return nil
}

// Read returns the content of a regular file. It never waits for a writer, as reading a pipe would.
func (w *Workspace) Read(name string) ([]byte, error) {
	if err := w.ready(); err != nil {
		return nil, err
	}
	data, err := w.read(name)
	if err != nil {
		return nil, translate("read", name, err)
	}
	return data, nil
}

func (w *Workspace) read(name string) ([]byte, error) {
	p, info, err := w.find(name)
	if err != nil {
		return nil, err
	}
	if info == nil {
		return nil, fs.ErrNotExist
	}
	if err := w.admit(name, info); err != nil {
		return nil, err
	}
	// What find saw may be gone: a pipe that took its place must not block, so it is judged again once open.
	f, err := w.root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if err := w.admit(name, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, w.limits.FileSize+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > w.limits.FileSize {
		return nil, w.tooLarge(name)
	}
	return data, nil
}

// find looks up a path part by part and refuses links on the way. The info is nil when there is nothing yet.
// It is os.Root that keeps a path inside when parts are swapped at the same time; find is for clear words.
func (w *Workspace) find(name string) (string, fs.FileInfo, error) {
	p, err := clean(name, w.limits.Depth)
	if err != nil {
		return "", nil, err
	}
	for i := 0; ; {
		part, last := p, true
		if n := strings.IndexByte(p[i:], '/'); n >= 0 {
			part, last = p[:i+n], false
			i += n + 1
		}
		info, err := w.root.Lstat(part)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return p, nil, nil
		case err != nil:
			return "", nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			return "", nil, &PathError{Path: name, Reason: subject(part, last) + "is a symbolic link"}
		case last:
			return p, info, nil
		case !info.IsDir():
			return "", nil, &PathError{Path: name, Reason: subject(part, last) + "is a file, not a folder"}
		case idOf(info).device != w.device:
			return "", nil, &PathError{Path: name, Reason: subject(part, last) + otherDevice}
		}
	}
}

// subject of a reason: nothing when it is the path itself.
func subject(part string, last bool) string {
	if last {
		return ""
	}
	return show(part) + " "
}

const otherDevice = "is on another file system"

// admit reports whether a file may be read or replaced.
func (w *Workspace) admit(name string, info fs.FileInfo) error {
	if err := w.own(name, info); err != nil {
		return err
	}
	if info.Size() > w.limits.FileSize {
		return w.tooLarge(name)
	}
	return nil
}

// own reports whether something is a file of the workspace alone, of any size.
func (w *Workspace) own(name string, info fs.FileInfo) error {
	id := idOf(info)
	switch {
	case info.IsDir():
		return &PathError{Path: name, Reason: "is a folder"}
	case !info.Mode().IsRegular():
		return &PathError{Path: name, Reason: notRegular}
	case id.links > 1: // the other name may be outside
		return &PathError{Path: name, Reason: "has more than one name (a hard link)"}
	case id.device != w.device:
		return &PathError{Path: name, Reason: otherDevice}
	}
	return nil
}

func (w *Workspace) tooLarge(name string) error {
	return &PathError{Path: name, Reason: fmt.Sprintf("is larger than %d bytes", w.limits.FileSize)}
}

type fileID struct{ device, links uint64 }

// idOf reads what fs.FileInfo does not show. The fields have other types on other systems.
func idOf(info fs.FileInfo) fileID {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{links: ^uint64(0)} // never admitted
	}
	return fileID{device: uint64(st.Dev), links: uint64(st.Nlink)} //nolint:unconvert // an id and a count
}

// bare is an error of package os without the host's path.
func bare(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return err
}
