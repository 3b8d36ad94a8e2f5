// Package folder takes a folder of this machine to a fleet and brings back what a run has changed in it.
//
//	f, err := folder.Scan(ctx, "site")              // what is to be uploaded, and what is left out
//	hash, err := f.Upload(ctx, client, tenant, nil) // the manifest of a task
//	back, err := f.Compare(ctx, client, run)        // once the run has ended
//	err = back.Apply(ctx, client, false)
//
// Nothing outside of the folder is read or written, and no link is followed. What a fleet answers is hostile until it is checked.
package folder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages/manifest"
)

// maxEntries bounds what a folder may have: more is a slip, such as the root of a disk.
const maxEntries = 100_000

// Reasons why something is left out.
const (
	WhyIgnored = "ignored"
	WhySecret  = "looks like a secret"
	WhyLink    = "a symbolic link"
	WhySpecial = "not a regular file"
	WhyName    = "its name is not allowed in a run"

	WhyUnreadable = "it cannot be read" // of List alone
)

// LeftOut is what is not uploaded.
type LeftOut struct{ Path, Why string }

// Folder is what a folder had when it was scanned.
type Folder struct {
	Files   *manifest.Manifest
	LeftOut []LeftOut // sorted; of a folder that is left out, the folder alone

	root    *os.Root
	rules   rules
	lenient bool // what cannot be read is left out
}

// Scan reads a folder. It must be closed.
func Scan(ctx context.Context, dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	f := &Folder{root: root, Files: &manifest.Manifest{}}
	if err := f.scan(ctx, f.now); err != nil {
		return nil, errors.Join(fmt.Errorf("read folder %s: %w", dir, err), root.Close())
	}
	return f, nil
}

// Close lets go of the folder.
func (f *Folder) Close() error { return f.root.Close() }

// scan walks the folder, and has take look at each file.
func (f *Folder) scan(ctx context.Context, take func(name string) (*manifest.File, error)) error {
	n := 0
	err := fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && f.lenient && name != ".":
			f.LeftOut = append(f.LeftOut, LeftOut{name, WhyUnreadable})
			return fs.SkipDir
		case err != nil:
			return err
		}
		if n++; n > maxEntries {
			return fmt.Errorf("it has more than %d files and folders: name a smaller one, or list what is not needed in %s", maxEntries, ignoreFile)
		}
		if name == "." {
			return f.read(name)
		}
		if why := f.why(name, d.Type()); why != "" {
			f.LeftOut = append(f.LeftOut, LeftOut{name, why})
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return f.read(name)
		}
		file, err := take(name)
		if err != nil {
			return err
		}
		if file != nil {
			f.Files.Files = append(f.Files.Files, *file)
		}
		return nil
	})
	slices.SortFunc(f.Files.Files, func(a, b manifest.File) int { return strings.Compare(a.Path, b.Path) })
	return err
}

// why returns the reason for which a name is left out; empty: it is not.
func (f *Folder) why(name string, kind fs.FileMode) string {
	switch {
	case kind&fs.ModeSymlink != 0:
		return WhyLink
	case !kind.IsDir() && !kind.IsRegular():
		return WhySpecial
	case manifest.CheckGiven(name) != nil:
		return WhyName
	default:
		return f.rules.why(strings.Split(name, "/"), kind.IsDir())
	}
}

// read takes over the rules of a folder.
func (f *Folder) read(dir string) error {
	for _, file := range []string{ignoreFile, gitIgnoreFile} {
		name := path.Join(dir, file)
		info, err := f.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return err
		}
		if info.Size() > maxRules {
			return fmt.Errorf("%s: has more than %d bytes", name, maxRules)
		}
		r, err := f.root.Open(name)
		if err != nil {
			return err
		}
		data, err := io.ReadAll(io.LimitReader(r, maxRules))
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
		f.rules.add(file, dir, strings.Split(string(data), "\n"))
	}
	return nil
}

// now is a file as it is now; nil: there is none.
func (f *Folder) now(name string) (_ *manifest.File, err error) {
	info, err := f.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return &manifest.File{Path: name}, nil // it is like no file of a run
	}
	r, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	sum := sha256.New()
	size, err := io.Copy(sum, r)
	if err != nil {
		return nil, err
	}
	return &manifest.File{Path: name, Size: size, Hash: hex.EncodeToString(sum.Sum(nil)), Exec: info.Mode()&0o100 != 0}, nil
}
