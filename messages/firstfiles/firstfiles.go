// Package firstfiles keeps the files that a task brings to its run, or names.
//
// [Save] is called twice: at admission, for tasks that name contents, so that these stay while the task waits; and by the worker
// that begins the run. Both store the same list, under the same reference of the run, so the order and the number of calls do
// not matter. A run that never begins has no more than a reference, which the collector of messages/bus/files removes.
//
// What repositories hold is added by the worker alone: it has a [Fetch], and an admission has none.
package firstfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/strict"
)

// Store keeps contents by tenant and hash.
type Store interface {
	// Stat returns the size of a content; false: it is not stored. One that is stays so for as long as Save may take.
	Stat(ctx context.Context, tenant, hash string) (size int64, ok bool, err error)
	// Put stores a content of size bytes. One that is stored already is no error.
	Put(ctx context.Context, tenant, hash string, size int64, r io.Reader) error
	// Get writes a content to w, of size bytes at most. The errors are manifest.ErrMissing and manifest.ErrDamaged.
	Get(ctx context.Context, tenant, hash string, size int64, w io.Writer) error
	// Refer keeps a manifest, and what it names, for as long as the run is kept.
	Refer(ctx context.Context, run messages.Ref, hash string) error
}

const (
	// How many contents are looked for, or stored, at the same time.
	atOnce = 16
	// Bounds a Save. What it has found stays stored for longer.
	saveWait = 10 * time.Minute
	// Bytes of a list of files that is uploaded.
	maxListed = 16 << 20
)

// Limits of the files of a task. Zero means none, but for what is fetched.
type Limits struct {
	Files int   // files and folders together
	Total int64 // bytes of all files together

	Redact func(string) string // takes secrets out of a text: no name may hold one; nil: there are none
}

// Saved is what the run begins with.
type Saved struct {
	Hash     string // of the manifest
	Manifest *manifest.Manifest
	Pointers int // files of repositories that stand for contents in Git LFS
}

// Save stores what a task brings, makes sure that what it names is stored, and has its run refer to all of it; nil: the task has
// no files. Repositories are fetched with fetch; without it they are left to the next Save. A *messages.FieldError is about the task,
// and names the file; any other error may pass. It may be called again.
func Save(ctx context.Context, st Store, task *messages.Task, l Limits, fetch Fetch) (*Saved, error) {
	if !task.HasFiles() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, saveWait, fmt.Errorf("the files of the task could not be saved within %v", saveWait))
	defer cancel()
	s := saving{Store: st, run: task.Ref(), limits: l, fetch: fetch}
	if task.Manifest != "" {
		return s.listed(ctx, task.Manifest)
	}
	return s.each(ctx, task)
}

// Check looks for what a task names as Save does, and stores and fetches nothing. What it has found stays for as long as a Save may take.
func Check(ctx context.Context, st Store, task *messages.Task, l Limits) error {
	_, err := Save(ctx, looking{st}, task, l, nil)
	return err
}

// looking is a store that takes nothing.
type looking struct{ Store }

func (looking) Put(context.Context, string, string, int64, io.Reader) error { return nil }
func (looking) Refer(context.Context, messages.Ref, string) error           { return nil }

type saving struct {
	Store

	run    messages.Ref
	limits Limits
	fetch  Fetch
}

// content is one that must be stored.
type content struct {
	file     manifest.File
	open     func() io.Reader // of one that is brought; nil: it is named
	hash, as string           // the fields that name it and its size
}

// each saves the files that a task lists.
func (s *saving) each(ctx context.Context, task *messages.Task) (*Saved, error) {
	m := task.FirstFiles()
	if err := s.fits("files", m); err != nil {
		return nil, err
	}
	var all []content
	for i := range task.Files {
		if task.Files[i].Git != nil {
			continue
		}
		f, _ := m.Find(task.Files[i].Path) // which has the hash
		field := fmt.Sprintf("files[%d].", i)
		c := content{file: f, hash: field + "hash", as: field + "size"}
		if data, ok := task.Files[i].Content(); ok {
			c.open = func() io.Reader { return bytes.NewReader(data) }
		}
		all = append(all, c)
	}
	if err := s.contents(ctx, all); err != nil {
		return nil, err
	}
	pointers, err := s.repositories(ctx, task, m)
	if err != nil {
		return nil, err
	}
	data, hash, err := m.Encode()
	if err != nil {
		return nil, err
	}
	if err := s.Put(ctx, s.run.Tenant, hash, int64(len(data)), bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("store the list of files: %w", err)
	}
	saved, err := s.refer(ctx, hash, m)
	if saved != nil {
		saved.Pointers = pointers
	}
	return saved, err
}

// listed saves the files of an uploaded manifest.
func (s *saving) listed(ctx context.Context, hash string) (*Saved, error) {
	refuse := func(format string, args ...any) error {
		return &messages.FieldError{Field: "manifest", Reason: fmt.Sprintf(format, args...)}
	}
	_, ok, err := s.Stat(ctx, s.run.Tenant, hash)
	if err != nil {
		return nil, fmt.Errorf("look for the list of files: %w", err)
	}
	var data bytes.Buffer
	if ok {
		err = s.Get(ctx, s.run.Tenant, hash, maxListed, &data)
	}
	switch {
	case !ok || errors.Is(err, manifest.ErrMissing):
		return nil, refuse("no list of files with this hash is stored: upload it, and submit the task within an hour")
	case errors.Is(err, manifest.ErrDamaged):
		return nil, refuse("the stored list of files is damaged, or larger than %d bytes: upload it again", maxListed)
	case err != nil:
		return nil, fmt.Errorf("read the list of files: %w", err)
	}
	m, err := manifest.Decode(data.Bytes())
	if err != nil {
		return nil, refuse("is not a list of files: %v", err)
	}
	if err := s.fits("manifest", m); err != nil {
		return nil, err
	}
	all := make([]content, len(m.Files))
	for i, f := range m.Files {
		if err := manifest.CheckGiven(f.Path); err != nil {
			return nil, refuse("%v", err)
		}
		all[i] = content{file: f, hash: "manifest", as: "manifest"}
	}
	for _, dir := range m.Folders {
		if err := manifest.CheckGiven(dir); err != nil {
			return nil, refuse("%v", err)
		}
	}
	if err := s.contents(ctx, all); err != nil {
		return nil, err
	}
	return s.refer(ctx, hash, m)
}

// refer is last: what it refers to has just been stored or found.
func (s *saving) refer(ctx context.Context, hash string, m *manifest.Manifest) (*Saved, error) {
	if err := s.Refer(ctx, s.run, hash); err != nil {
		return nil, fmt.Errorf("refer to the list of files: %w", err)
	}
	return &Saved{Hash: hash, Manifest: m}, nil
}

func (s *saving) fits(field string, m *manifest.Manifest) error {
	n, size := len(m.Files)+len(m.Folders), int64(0)
	if s.limits.Files > 0 && n > s.limits.Files {
		return &messages.FieldError{Field: field, Reason: fmt.Sprintf(
			"has %d files and folders, and the worker takes %d: see LONGSHORE_WORKSPACE_FILES", n, s.limits.Files)}
	}
	if s.limits.Redact != nil {
		for p := range names(m) {
			if shown := s.limits.Redact(p); shown != p {
				return &messages.FieldError{Field: field, Reason: strict.Shown(shown) + ": has a secret in its name: name it otherwise"}
			}
		}
	}
	for _, f := range m.Files {
		if s.limits.Total > 0 && f.Size > s.limits.Total-size { // the sum might not fit
			return &messages.FieldError{Field: field, Reason: fmt.Sprintf(
				"%s: with it there are more than the %d bytes that the worker takes: see LONGSHORE_WORKSPACE_BYTES",
				strict.Shown(f.Path), s.limits.Total)}
		}
		size += f.Size
	}
	return nil
}

// names are those of files, and of folders without files.
func names(m *manifest.Manifest) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range m.Files {
			if !yield(m.Files[i].Path) {
				return
			}
		}
		for _, dir := range m.Folders {
			if !yield(dir) {
				return
			}
		}
	}
}

// contents stores those that the task brings and looks for the others. The error is that of the first one.
func (s *saving) contents(ctx context.Context, all []content) error {
	wrong := make([]error, len(all))
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range all {
		group.Go(func() error {
			err := s.content(each, &all[i])
			if _, ok := errors.AsType[*messages.FieldError](err); ok { // which comes first, is seen when all have been tried
				wrong[i], err = err, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, err := range wrong {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *saving) content(ctx context.Context, c *content) error {
	size, ok, err := s.Stat(ctx, s.run.Tenant, c.file.Hash)
	switch {
	case err != nil:
		return fmt.Errorf("look for the content of %s: %w", c.file.Path, err)
	case !ok && c.open != nil:
		if err := s.Put(ctx, s.run.Tenant, c.file.Hash, c.file.Size, c.open()); err != nil {
			return fmt.Errorf("store %s: %w", c.file.Path, err)
		}
		return nil
	case !ok:
		return &messages.FieldError{Field: c.hash, Reason: strict.Shown(c.file.Path) +
			": no content with this hash is stored: upload it, and submit the task within an hour"}
	case size != c.file.Size:
		return &messages.FieldError{Field: c.as, Reason: fmt.Sprintf(
			"%s: the content with this hash has %d bytes, not %d", strict.Shown(c.file.Path), size, c.file.Size)}
	default:
		return nil
	}
}
