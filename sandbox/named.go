package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Waits between looks whether a shared workspace is free.
const (
	firstLook = 2 * time.Millisecond
	nextLooks = 100 * time.Millisecond // at most
)

// locks is where the locks are; no tenant is called so.
const locks = ".locks"

// Named opens a workspace that runs of a tenant share, for one at a time: it waits until ctx ends, then with the cause
// of ctx. Close lets the next one in, and so does the death of the process. That holds for all processes that use the
// same root folder; those that use another one have other files. Who waited longest is not always next.
func (w *Workspaces) Named(ctx context.Context, tenant, name string) (*Workspace, error) {
	if err := (messages.Ref{Tenant: tenant, Run: name}).Check(); err != nil {
		return nil, fmt.Errorf("open workspace %q: %w", strict.Clip(name, 64), err)
	}
	lock, err := w.lock(ctx, tenant+"."+name)
	if err != nil {
		return nil, err
	}
	dir := messages.Ref{Tenant: tenant}.Folder(name)
	return &Workspace{limits: w.limits.withDefaults(), unlock: lock.Close, open: func() (*os.Root, error) {
		if err := w.root.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		return w.root.OpenRoot(dir)
	}}, nil
}

// lock is held until the file is closed.
func (w *Workspaces) lock(ctx context.Context, name string) (*os.File, error) {
	if err := w.root.MkdirAll(locks, 0o700); err != nil {
		return nil, fmt.Errorf("lock workspace: %w", bare(err))
	}
	f, err := w.root.OpenFile(locks+"/"+name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock workspace: %w", bare(err))
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := firstLook; ; wait = min(2*wait, nextLooks) {
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-timer.C:
		}
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return f, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(fmt.Errorf("lock workspace: %w", err), f.Close())
		}
		timer.Reset(wait)
	}
}
