package snapshot

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/firstfiles"
	"github.com/longshore-run/longshore/sandbox"
)

// Config of Folders.
type Config struct {
	Dir       string              // holds the folders; made, for its owner alone, when it is missing
	Store     Store               // where the files are saved
	Workspace sandbox.Limits      // of what tools read and write
	Limits    Limits              // of what is saved
	Fetch     firstfiles.Fetch    // gets the repositories of tasks; nil: tasks have none
	Redact    func(string) string // takes secrets out of a text: a file whose name holds one is not saved; nil: there are none
	Keep      time.Duration       // how long the folder of a run that has ended stays, for people on this machine. Default 24 h; less than 0: not at all
	Log       *slog.Logger        // default: discarded
}

// Folders are the folders of the claims of one worker:
//
//	<dir>/.claims/<life>/<tenant>.<run>.<claim>	while the claim works
//	<dir>/<tenant>/<run>				when the run has ended, for Keep
//
// Safe for concurrent use, and several processes may share a Dir.
type Folders struct {
	cfg  Config
	root *os.Root
	life string
	lock *os.File // held while this process lives
}

const (
	claims     = ".claims" // no tenant is called so, nor like the others
	ended      = ".ended"
	locks      = ".locks"
	lifeLock   = "claims."
	keepEnded  = 24 * time.Hour
	sweepEvery = time.Hour
)

// NewFolders opens the folder that holds those of claims, and removes what processes that have died left in it.
func NewFolders(cfg Config) (*Folders, error) {
	cfg.Keep = cmp.Or(cfg.Keep, keepEnded)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Redact == nil {
		cfg.Redact = func(s string) string { return s }
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create workspaces: %w", err)
	}
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open workspaces: %w", err)
	}
	f := &Folders{cfg: cfg, root: root, life: rand.Text()}
	if err := f.begin(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Folders) begin() (err error) {
	for _, dir := range []string{claims, ended} {
		if err := f.root.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create workspaces: %w", err)
		}
	}
	if f.lock, err = f.acquire(f.life); err != nil { // before its folder exists: who finds the folder finds it locked
		return err
	}
	if err := f.root.Mkdir(path.Join(claims, f.life), 0o700); err != nil {
		return fmt.Errorf("create workspaces: %w", err)
	}
	n, err := Strays(f.cfg.Dir, true)
	if n > 0 && err == nil {
		f.cfg.Log.Info("removed folders of workers that have died", "workers", n)
	}
	return err
}

// errHeld means that a process lives.
var errHeld = errors.New("it is locked")

func (f *Folders) acquire(life string) (*os.File, error) {
	if err := f.root.MkdirAll(locks, 0o700); err != nil {
		return nil, fmt.Errorf("lock workspaces: %w", err)
	}
	lock, err := f.root.OpenFile(path.Join(locks, lifeLock+life), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock workspaces: %w", err)
	}
	switch err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
		return lock, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(errHeld, lock.Close())
	default:
		return nil, errors.Join(fmt.Errorf("lock workspaces: %w", err), lock.Close())
	}
}

// First saves the files that a task brings to its run, or that a repository holds for it: see firstfiles.Save.
func (f *Folders) First(ctx context.Context, task *messages.Task) (*firstfiles.Saved, error) {
	if f.cfg.Fetch == nil && task.FetchesFiles() {
		return nil, &messages.FieldError{Field: "files", Reason: "repositories are not fetched here"}
	}
	l := f.cfg.Limits.withDefaults()
	return firstfiles.Save(ctx, f.cfg.Store, task, firstfiles.Limits{Files: l.Files, Total: l.Total, Redact: f.cfg.Redact}, f.cfg.Fetch)
}

// Strays counts the processes that have died and left folders of claims below a Dir, and removes these when told to. NewFolders does
// so too.
func Strays(dir string, remove bool) (n int, err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open workspaces: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	f := &Folders{root: root}
	lives, err := f.strays()
	if err != nil || !remove {
		return len(lives), err
	}
	for _, life := range lives {
		if err := f.remove(life); err != nil {
			return len(lives), err
		}
	}
	return len(lives), nil
}

// strays are the lives of processes that have died and left folders of claims.
func (f *Folders) strays() (lives []string, err error) {
	entries, err := fs.ReadDir(f.root.FS(), claims)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for folders of workers that have died: %w", err)
	}
	for _, e := range entries {
		lock, err := f.acquire(e.Name())
		switch {
		case errors.Is(err, errHeld):
		case err != nil:
			return nil, err
		default:
			lives = append(lives, e.Name())
			if err := lock.Close(); err != nil {
				return nil, fmt.Errorf("lock workspaces: %w", err)
			}
		}
	}
	return lives, nil
}

// remove removes the folders of a life that has ended.
func (f *Folders) remove(life string) error {
	lock, err := f.acquire(life)
	if errors.Is(err, errHeld) { // another one removes it
		return nil
	}
	if err != nil {
		return err
	}
	err = errors.Join(removeAll(f.root, path.Join(claims, life)), f.root.Remove(path.Join(locks, lifeLock+life)), lock.Close())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove folders of a worker that has died: %w", err)
	}
	return nil
}

// removeAll removes a folder in which a program may have left folders that its owner may not change.
func removeAll(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	openAll(root, name)
	return root.RemoveAll(name)
}

// openAll gives the owner of folders all rights to them. What it cannot do shows when they are removed.
func openAll(root *os.Root, name string) {
	_ = root.Chmod(name, 0o700)
	dir, err := root.Open(name)
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(-1)
	for _, e := range entries {
		if e.IsDir() {
			openAll(root, path.Join(name, e.Name()))
		}
	}
}

// Refer keeps a manifest for as long as the run is kept. Something else must refer to it meanwhile.
func (f *Folders) Refer(ctx context.Context, run messages.Ref, hash string) error {
	return f.cfg.Store.Refer(ctx, run, hash)
}

// Of returns the folder of a claim, which is made at its first use.
func (f *Folders) Of(run messages.Ref, claim string) (*Folder, error) {
	if err := run.Check(); err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	if claim == "" || claim != path.Base(claim) || claim[0] == '.' {
		return nil, fmt.Errorf("open workspace: %q is no claim", claim)
	}
	return &Folder{all: f, run: run, path: path.Join(claims, f.life, run.Tenant+"."+run.Run+"."+claim)}, nil
}

// Run removes folders of runs that ended more than Keep ago, until ctx ends.
func (f *Folders) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := f.Sweep(time.Now().Add(-f.cfg.Keep)); err != nil {
			f.cfg.Log.WarnContext(ctx, "remove folders of runs that have ended", "err", err)
		}
		timer.Reset(min(sweepEvery, max(f.cfg.Keep, time.Minute)))
	}
}

// Sweep removes the folders of runs that ended before a time.
func (f *Folders) Sweep(before time.Time) error {
	entries, err := fs.ReadDir(f.root.FS(), ended)
	if err != nil {
		return fmt.Errorf("look for folders of runs that have ended: %w", err)
	}
	var errs []error
	for _, e := range entries {
		tenant, run, ok := strings.Cut(e.Name(), ".")
		ref := messages.Ref{Tenant: tenant, Run: run}
		info, err := e.Info()
		if !ok || ref.Check() != nil || err != nil || info.ModTime().After(before) {
			continue
		}
		if err = removeAll(f.root, ref.Folder()); err == nil {
			err = f.root.Remove(path.Join(ended, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove the folder of %s: %w", ref, err))
		}
	}
	return errors.Join(errs...)
}

// Close removes the folders of the claims of this process, and ends the use of the root folder.
func (f *Folders) Close() error {
	var errs []error
	if f.lock != nil {
		errs = append(errs, removeAll(f.root, path.Join(claims, f.life)), f.root.Remove(path.Join(locks, lifeLock+f.life)), f.lock.Close())
	}
	if err := errors.Join(append(errs, f.root.Close())...); err != nil {
		return fmt.Errorf("close workspaces: %w", err)
	}
	return nil
}
