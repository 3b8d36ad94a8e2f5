package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/sandbox"
)

// Scan lists the files of a folder. It hashes those alone that the cache does not know, and leaves in the cache what it has
// seen. A *sandbox.PathError names the file that is beyond a limit, cannot be read or does not stay the same.
func Scan(ctx context.Context, dir *os.File, c *Cache, l Limits) (*manifest.Manifest, error) {
	s := &scanner{limits: l.withDefaults(), seen: make(map[string]known, len(c.files)), m: &manifest.Manifest{}}
	s.hash = func(at int, name, path string, as *facts) (string, error) { return s.hashed(c, at, name, path, as) }
	if err := s.all(ctx, dir); err != nil {
		return nil, err
	}
	c.files = s.seen
	return s.m, nil
}

// scanner walks a folder by descriptors: no path is looked up twice, and no link is followed.
type scanner struct {
	limits Limits
	hash   func(at int, name, path string, as *facts) (string, error) // as is of what was hashed afterwards

	device  uint64
	entries int
	bytes   int64
	seen    map[string]known
	m       *manifest.Manifest
}

// errGone means that what has a name is left out: it is no longer there, or nothing that is saved.
var errGone = errors.New("left out")

func (s *scanner) all(ctx context.Context, dir *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return fmt.Errorf("look at the workspace: %w", err)
	}
	s.device = factsOf(&st).device
	at, err := unix.Openat(int(dir.Fd()), ".", openFolder, 0)
	if err != nil {
		return fmt.Errorf("open the workspace: %w", err)
	}
	if _, err := s.folder(ctx, at, "", 1); errors.Is(err, errGone) {
		return errors.New("the workspace was removed")
	} else if err != nil {
		return err
	}
	slices.SortFunc(s.m.Files, func(a, b manifest.File) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(s.m.Folders)
	return nil
}

const (
	openFolder = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	openFile   = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	namesRead  = 512 // at once
)

// folder lists an open folder and closes it. It reports whether the folder holds a file or folder that is listed.
func (s *scanner) folder(ctx context.Context, at int, path string, depth int) (holds bool, err error) {
	dir := os.NewFile(uintptr(at), path)
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(namesRead)
		for _, name := range names {
			listed, err := s.entry(ctx, at, name, join(path, name), depth)
			if errors.Is(err, errGone) {
				continue
			}
			if err != nil {
				return false, err
			}
			holds = holds || listed
		}
		switch {
		case errors.Is(err, io.EOF):
			return holds, nil
		case errors.Is(err, unix.ENOENT):
			return false, errGone
		case err != nil:
			return false, fmt.Errorf("read folder of the workspace: %w", err)
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		}
	}
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// entry lists one name of a folder. An errGone leaves it out.
func (s *scanner) entry(ctx context.Context, at int, name, path string, depth int) (listed bool, err error) {
	if strings.HasPrefix(name, sandbox.TempPrefix) {
		return false, nil
	}
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return false, errGone
		}
		return false, &sandbox.PathError{Path: path, Reason: "cannot be looked at: " + err.Error()}
	}
	as := factsOf(&st)
	if !s.saves(&as) || manifest.CheckPath(path) != nil {
		s.m.LeftOut++
		return false, errGone
	}
	if depth > s.limits.Depth {
		return false, &sandbox.PathError{Path: path, Reason: fmt.Sprintf("has more than %d parts: move it up", s.limits.Depth)}
	}
	if s.entries++; s.entries > s.limits.Files {
		return false, &sandbox.PathError{Path: path, Reason: fmt.Sprintf(
			"is one too many: a run may keep %d files and folders; remove those that are not needed", s.limits.Files)}
	}
	if as.kind == unix.S_IFDIR {
		return s.subfolder(ctx, at, name, path, depth)
	}
	err = s.file(at, name, path, &as)
	if errors.Is(err, errGone) {
		s.entries--
	}
	return err == nil, err
}

// saves reports whether something is a folder, or a file of the workspace alone.
func (s *scanner) saves(as *facts) bool {
	return as.device == s.device && (as.kind == unix.S_IFDIR || as.kind == unix.S_IFREG && as.links == 1)
}

func (s *scanner) subfolder(ctx context.Context, at int, name, path string, depth int) (bool, error) {
	sub, err := unix.Openat(at, name, openFolder, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP): // it was swapped since
		return false, errGone
	case err != nil:
		return false, &sandbox.PathError{Path: path, Reason: "cannot be opened: " + err.Error()}
	}
	var st unix.Stat_t
	if err := unix.Fstat(sub, &st); err != nil || factsOf(&st).device != s.device {
		return false, errors.Join(err, unix.Close(sub))
	}
	holds, err := s.folder(ctx, sub, path, depth+1)
	if err == nil && !holds {
		s.m.Folders = append(s.m.Folders, path)
	}
	return true, err
}

func (s *scanner) file(at int, name, path string, as *facts) error {
	if err := s.afford(path, as.size); err != nil {
		return err
	}
	before := as.size
	hash, err := s.hash(at, name, path, as)
	if err != nil {
		return err
	}
	if as.size != before {
		s.bytes -= before
		if err := s.afford(path, as.size); err != nil {
			return err
		}
	}
	s.m.Files = append(s.m.Files, manifest.File{Path: path, Size: as.size, Hash: hash, Exec: as.exec})
	return nil
}

// afford counts the bytes of a file.
func (s *scanner) afford(path string, size int64) error {
	if size > s.limits.FileSize {
		return &sandbox.PathError{Path: path, Reason: fmt.Sprintf("has %d bytes, and a file that is kept may have %d", size, s.limits.FileSize)}
	}
	if s.bytes += size; s.bytes > s.limits.Total {
		return &sandbox.PathError{Path: path, Reason: fmt.Sprintf(
			"is too much: the files of a run may have %d bytes together; remove those that are not needed", s.limits.Total)}
	}
	return nil
}

// hashTries is how often a file that changes while it is read is read.
const hashTries = 3

// hashed is the hash of a file: from the cache, or from its content.
func (s *scanner) hashed(c *Cache, at int, name, path string, as *facts) (string, error) {
	if k, ok := c.files[path]; ok && k.holds(&as.stamp) {
		s.seen[path] = k
		return k.hash, nil
	}
	for range hashTries {
		began := time.Now()
		hash, err := s.read(at, name, path, as)
		if errors.Is(err, errChanged) {
			continue
		}
		if err == nil {
			s.seen[path] = known{as.stamp, began, hash}
		}
		return hash, err
	}
	return "", &sandbox.PathError{Path: path, Reason: errChanged.Error()}
}

// read hashes the content of a file. The file that is opened may be another than the one that was looked at.
func (s *scanner) read(at int, name, path string, as *facts) (string, error) {
	fd, err := unix.Openat(at, name, openFile, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		return "", errGone
	case err != nil:
		return "", &sandbox.PathError{Path: path, Reason: "cannot be read: " + err.Error()}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var before, after unix.Stat_t
	if err := unix.Fstat(fd, &before); err != nil {
		return "", fmt.Errorf("look at a file of the workspace: %w", err)
	}
	if *as = factsOf(&before); as.kind != unix.S_IFREG || !s.saves(as) {
		return "", errGone
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, as.size+1))
	if err != nil {
		return "", &sandbox.PathError{Path: path, Reason: "cannot be read: " + err.Error()}
	}
	if err := unix.Fstat(fd, &after); err != nil {
		return "", fmt.Errorf("look at a file of the workspace: %w", err)
	}
	if n != as.size || factsOf(&after) != *as {
		return "", errChanged
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
