package firstfiles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/strict"
)

// Fetch gets a repository at its commit and hands keep what of it a run may have, once. The limits are those of all files of the run.
// A *messages.FieldError is about the repository, and a *FetchError about its server, which may recover. The contents can be read until
// keep returns.
type Fetch func(ctx context.Context, run messages.Ref, from *messages.Repository, l Limits, keep func(*Tree) error) error

// FetchError means that a repository cannot be fetched now.
type FetchError struct {
	Field  string // of the task
	Reason string
}

func (e *FetchError) Error() string { return e.Field + ": " + e.Reason }

// Tree is what a repository holds.
type Tree struct {
	Files    []TreeFile
	LeftOut  int // links, submodules, and names that no tool may use
	Pointers int // files that stand for contents in Git LFS
}

// TreeFile is a regular file of a repository. Its path is one that a run may be given.
type TreeFile struct {
	Path    string // below the folder of the repository that was asked for
	Exec    bool
	Content *io.SectionReader // may be read in several goroutines through sections of its own
}

// repositories stores the files of a task's repositories and adds them to its manifest. It returns how many are pointers.
func (s *saving) repositories(ctx context.Context, task *messages.Task, m *manifest.Manifest) (pointers int, err error) {
	if s.fetch == nil || !task.FetchesFiles() {
		return 0, nil
	}
	from := make(map[string]int, len(task.Files)) // the field of each file
	for i := range task.Files {
		if task.Files[i].Git == nil {
			from[task.Files[i].Path] = i
		}
	}
	for i := range task.Files {
		g := task.Files[i].Git
		if g == nil {
			continue
		}
		field := fmt.Sprintf("files[%d].git", i)
		err := s.fetch(ctx, s.run, g, s.limits, func(t *Tree) error {
			pointers += t.Pointers
			m.LeftOut += t.LeftOut
			for _, f := range t.Files {
				if other, ok := from[path.Join(g.Into, f.Path)]; ok {
					return &messages.FieldError{Field: "into", Reason: fmt.Sprintf(
						"%s: the run has this file by files[%d] too", strict.Shown(path.Join(g.Into, f.Path)), other)}
				}
			}
			added, err := s.tree(ctx, t, g.Into)
			for j := range added {
				from[added[j].Path] = i
			}
			m.Files = append(m.Files, added...)
			return err
		})
		if passing, ok := errors.AsType[*FetchError](err); ok {
			return 0, &FetchError{field + "." + passing.Field, passing.Reason}
		}
		if err != nil {
			return 0, strict.Under(field, err)
		}
		if err := s.fits(field, m); err != nil {
			return 0, err
		}
	}
	slices.SortFunc(m.Files, func(a, b manifest.File) int { return strings.Compare(a.Path, b.Path) })
	return pointers, apart(m, from)
}

// apart refuses files that are below another one, which one repository alone never has.
func apart(m *manifest.Manifest, from map[string]int) error {
	for i := range m.Files {
		p := m.Files[i].Path
		for end := range p {
			if p[end] != '/' {
				continue
			}
			if other, ok := from[p[:end]]; ok {
				return &messages.FieldError{Field: fmt.Sprintf("files[%d]", from[p]), Reason: fmt.Sprintf(
					"%s: is below a file of files[%d]", strict.Shown(p), other)}
			}
		}
	}
	return nil
}

// tree stores the contents of a tree, and returns its files as those of the run.
func (s *saving) tree(ctx context.Context, t *Tree, into string) ([]manifest.File, error) {
	files, all := make([]manifest.File, len(t.Files)), make([]content, len(t.Files))
	for i := range t.Files {
		f := &t.Files[i]
		p := path.Join(into, f.Path)
		if err := manifest.CheckGiven(p); err != nil {
			return nil, &messages.FieldError{Field: "into", Reason: err.Error()}
		}
		hash, err := hashOf(f.Content)
		if err != nil {
			return nil, fmt.Errorf("read %s of the repository: %w", f.Path, err)
		}
		files[i] = manifest.File{Path: p, Size: f.Content.Size(), Hash: hash, Exec: f.Exec}
		all[i] = content{file: files[i], open: func() io.Reader { return section(f.Content) }}
	}
	if err := s.fits("commit", &manifest.Manifest{Files: files}); err != nil {
		return nil, err
	}
	return files, s.contents(ctx, all)
}

// section reads all of a content, from wherever another reader of it is.
func section(of *io.SectionReader) *io.SectionReader { return io.NewSectionReader(of, 0, of.Size()) }

func hashOf(of *io.SectionReader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, section(of)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
