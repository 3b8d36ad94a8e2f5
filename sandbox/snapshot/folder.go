package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/sandbox"
)

// saveWait bounds a save. Contents that it has found stored stay for longer than that: see Store.
const saveWait = 10 * time.Minute

// Folder has the files of a run for one claim. Tools may use its Workspace in any goroutines; its methods are for one.
type Folder struct {
	all  *Folders
	run  messages.Ref
	path string

	mu     sync.Mutex // never held while files are read or written, but by Save and at the end of Close
	closed bool
	stop   context.CancelFunc // ends a restore; set with ws
	ws     *sandbox.Workspace // nil: not used yet, or it could not be opened
	filled                    // when the workspace is open
}

// filled is what a folder holds.
type filled struct {
	root  *os.Root           // nil: there is no folder
	saved *manifest.Manifest // what the log has, or is about to have; nil: nothing
	cache Cache
}

// Saved is what a save has stored.
type Saved struct {
	Hash     string
	Manifest *manifest.Manifest
	Changes  manifest.Changes // since the save before
}

// Workspace is what tools work in: the same until Close. At its first use the files of the manifest are restored, none if the hash
// is empty. An error of that is the error of all that the tools try; the next call of Workspace tries again.
func (f *Folder) Workspace(ctx context.Context, hash string) *sandbox.Workspace {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ws == nil {
		ctx, f.stop = context.WithCancel(ctx)
		f.ws = sandbox.OpenLater(func() (*os.Root, error) { return f.prepare(ctx, hash) }, f.all.cfg.Workspace)
	}
	return f.ws
}

// prepare makes the folder and fills it. There is one at a time: a workspace opens once, and the next follows one that failed.
func (f *Folder) prepare(ctx context.Context, hash string) (*os.Root, error) {
	f.mu.Lock()
	closed := f.closed
	f.mu.Unlock()
	if closed {
		return nil, os.ErrClosed
	}
	has, adopted, err := f.fill(ctx, hash)
	var root *os.Root
	if err == nil {
		root, err = f.all.root.OpenRoot(f.path)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.ws = nil
		return nil, errors.Join(err, f.drop(&has))
	}
	f.filled = has
	f.ws.Touch(adopted)
	return root, nil
}

// fill makes the folder, with the files of a manifest. What it returns with an error is to be dropped.
func (f *Folder) fill(ctx context.Context, hash string) (has filled, adopted bool, err error) {
	if hash == "" {
		adopted, err = f.adopt()
	} else {
		err = f.all.root.Mkdir(f.path, 0o700)
	}
	if err != nil {
		return has, false, err
	}
	if has.root, err = f.all.root.OpenRoot(f.path); err != nil {
		return has, false, errors.Join(err, removeAll(f.all.root, f.path))
	}
	if hash != "" {
		if err := f.restore(ctx, hash, &has); err != nil {
			return has, false, fmt.Errorf("restore the files of the run: %w", err)
		}
	}
	return has, adopted, nil
}

// adopt makes the folder of a run whose log knows no files. One that an earlier version worked in, which had one folder for
// all claims of a run, is taken over as it is.
func (f *Folder) adopt() (adopted bool, err error) {
	old := f.run.Folder()
	if _, err := f.all.root.Lstat(f.mark()); errors.Is(err, fs.ErrNotExist) {
		if info, err := f.all.root.Lstat(old); err == nil && info.IsDir() {
			return true, f.all.root.Rename(old, f.path)
		}
	}
	return false, f.all.root.Mkdir(f.path, 0o700)
}

func (f *Folder) restore(ctx context.Context, hash string, has *filled) error {
	m, err := load(ctx, f.all.cfg.Store, f.run.Tenant, hash)
	if err != nil {
		return err
	}
	if err := restore(ctx, f.all.cfg.Store, f.run.Tenant, has.root, m, f.all.cfg.Limits); err != nil {
		return err
	}
	dir, err := has.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := has.cache.learn(ctx, dir, m, f.all.cfg.Limits); err != nil {
		return err
	}
	has.saved = m
	return nil
}

// Save stores what the tools have changed and returns what the log is to say; nil when nothing has changed since the save before. Idle
// says that no call that may change files is running. It never returns before all that it names is stored, and may be called
// again after an error. A *sandbox.PathError is about a file that cannot be saved.
func (f *Folder) Save(ctx context.Context, idle bool) (_ *Saved, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.root == nil || !f.ws.Touched() {
		return nil, nil
	}
	if idle {
		f.ws.Touch(false)
		defer func() {
			if err != nil {
				f.ws.Touch(true)
			}
		}()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, saveWait, fmt.Errorf("the files could not be saved within %v", saveWait))
	defer cancel()
	for range hashTries {
		var s *Saved
		if s, err = f.save(ctx); !errors.Is(err, errChanged) {
			return s, err
		}
	}
	return nil, err
}

func (f *Folder) save(ctx context.Context) (*Saved, error) {
	dir, err := f.root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	defer dir.Close()
	m, err := Scan(ctx, dir, &f.cache, f.all.cfg.Limits)
	if err != nil {
		return nil, fmt.Errorf("list the files of the run: %w", err)
	}
	s := &Saved{Manifest: m, Changes: manifest.Compare(f.saved, m)}
	if before := f.saved; s.Changes.Empty() && (before == nil && len(m.Folders) == 0 || before != nil && slices.Equal(before.Folders, m.Folders)) {
		return nil, nil
	}
	if err := f.named(&s.Changes, m); err != nil {
		return nil, err
	}
	if s.Hash, err = save(ctx, f.all.cfg.Store, f.run, f.root, f.saved, m); err != nil {
		return nil, fmt.Errorf("save the files of the run: %w", err)
	}
	f.saved = m
	return s, nil
}

// named refuses new names that hold a secret: lists of files are shown to all who may read the run. Nothing is stored then.
func (f *Folder) named(c *manifest.Changes, m *manifest.Manifest) error {
	refuse := func(path string) error {
		shown := f.all.cfg.Redact(path)
		if shown == path {
			return nil
		}
		return &sandbox.PathError{Path: shown, Reason: "has a secret in its name: name it otherwise"}
	}
	for i := range c.Added {
		if err := refuse(c.Added[i].Path); err != nil {
			return err
		}
	}
	for _, dir := range m.Folders {
		if f.saved != nil {
			if _, old := slices.BinarySearch(f.saved.Folders, dir); old {
				continue
			}
		}
		if err := refuse(dir); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the use of the folder and removes it. The folder of a run that has ended stays for a while instead, as Config says.
func (f *Folder) Close(runEnded bool) error {
	ws := f.end()
	if err := ws.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if runEnded && f.root != nil && f.all.cfg.Keep > 0 {
		if err := f.publish(); err != nil {
			return errors.Join(fmt.Errorf("keep the folder of a run that has ended: %w", err), f.drop(&f.filled))
		}
	}
	if err := f.drop(&f.filled); err != nil {
		return fmt.Errorf("remove the folder of a claim: %w", err)
	}
	return nil
}

// end has no restore begin, and one that is under way end.
func (f *Folder) end() *sandbox.Workspace {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.stop != nil {
		f.stop()
	}
	return f.ws
}

// mark is the file that says since when the folder of the run is that of one that has ended.
func (f *Folder) mark() string { return path.Join(ended, f.run.Tenant+"."+f.run.Run) }

// publish puts the folder where people look for that of the run.
func (f *Folder) publish() error {
	root, to := f.all.root, f.run.Folder()
	mark, err := root.OpenFile(f.mark(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	now := time.Now()
	err = errors.Join(mark.Close(), root.Chtimes(f.mark(), now, now), root.MkdirAll(path.Dir(to), 0o700), removeAll(root, to))
	if err != nil {
		return err
	}
	return root.Rename(f.path, to)
}

// drop closes and removes what a folder holds; that there is none is no error.
func (f *Folder) drop(has *filled) error {
	if has.root == nil {
		return nil
	}
	err := errors.Join(has.root.Close(), removeAll(f.all.root, f.path))
	*has = filled{}
	return err
}
