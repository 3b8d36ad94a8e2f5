// Package manifest says what the files of a run were at one moment: their paths, sizes and hashes.
//
// A [Manifest] is stored as a content like any file, named by its own hash; a run's log holds that hash, in the record files_saved.
// [Decode] reads one that others stored and checks all of it: what it returns may be written below a folder. [Compare] says
// what has changed between two. Contents are named by their SHA-256 in hex, for each tenant apart.
//
// Standard library only: clients read manifests too.
package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages/strict"
)

// Errors of a content that is read.
var (
	ErrMissing = errors.New("the content is not stored")
	ErrDamaged = errors.New("the content is damaged: its hash is another")
)

// Bounds of what Decode accepts. What a worker saves is bounded by its own limits, which are lower by default.
const (
	MaxEncoded = 64 << 20 // bytes of a manifest
	MaxPath    = 4096     // bytes of a path
)

// Bounds of what CheckGiven accepts: file systems and workspaces take no more.
const (
	maxParts = 32
	maxPart  = 255 // bytes
)

// TempPrefix begins the name of a file that is being written. No file of a run is called so.
const TempPrefix = ".longshore-tmp-"

// version of the form, of which Decode knows no other.
const version = 1

// Manifest lists the files of a run, sorted by path. The zero value is that of a run without files.
type Manifest struct {
	Files   []File   `json:"files,omitempty"`
	Folders []string `json:"folders,omitempty"` // that hold no file of the list, sorted
	// LeftOut is how many names were left out: links, files with more than one name, pipes, sockets, devices, and names that no
	// tool may use.
	LeftOut int `json:"leftOut,omitempty"`
}

// File is a regular file.
type File struct {
	Path string `json:"path"` // relative, with slashes
	Size int64  `json:"size"`
	Hash string `json:"hash"`           // SHA-256 of the content, in hex
	Exec bool   `json:"exec,omitempty"` // its owner may execute it
}

// form is what is stored.
type form struct {
	Version int `json:"version"`
	Manifest
}

// Encode returns the stored form and its hash. The same files have the same.
func (m *Manifest) Encode() (data []byte, hash string, err error) {
	if data, err = json.Marshal(form{version, *m}); err != nil {
		return nil, "", fmt.Errorf("encode manifest: %w", err)
	}
	return data, HashOf(data), nil
}

// Decode reads what Encode wrote and checks all of it.
func Decode(data []byte) (*Manifest, error) {
	if len(data) > MaxEncoded {
		return nil, fmt.Errorf("decode manifest: %d bytes, more than %d", len(data), MaxEncoded)
	}
	var f form
	if err := strict.Decode(data, &f); err != nil {
		return nil, fmt.Errorf("decode manifest: %w", err)
	}
	if f.Version != version {
		return nil, fmt.Errorf("decode manifest: its version is %d, and this program knows %d", f.Version, version)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("decode manifest: %w", err)
	}
	return &f.Manifest, nil
}

// check holds what others wrote to what Decode promises.
func (m *Manifest) check() error {
	for i := range m.Files {
		f := &m.Files[i]
		switch {
		case i > 0 && f.Path <= m.Files[i-1].Path:
			return fmt.Errorf("%q: not sorted", strict.Clip(f.Path, 128))
		case f.Size < 0 || !ValidHash(f.Hash):
			return fmt.Errorf("%q: size or hash is none", strict.Clip(f.Path, 128))
		}
		if err := CheckPath(f.Path); err != nil {
			return err
		}
		if err := m.within(f.Path); err != nil {
			return err
		}
	}
	for i, dir := range m.Folders {
		if i > 0 && dir <= m.Folders[i-1] {
			return fmt.Errorf("%q: not sorted", strict.Clip(dir, 128))
		}
		if err := CheckPath(dir); err != nil {
			return err
		}
		if _, ok := m.Find(dir); ok {
			return fmt.Errorf("%q: is a file and a folder", strict.Clip(dir, 128))
		}
		if err := m.within(dir); err != nil {
			return err
		}
	}
	if m.LeftOut < 0 {
		return errors.New("leftOut: is less than 0")
	}
	return nil
}

// within refuses a path below a file.
func (m *Manifest) within(path string) error {
	for i := range path {
		if path[i] != '/' {
			continue
		}
		if _, ok := m.Find(path[:i]); ok {
			return fmt.Errorf("%q: is below a file", strict.Clip(path, 128))
		}
	}
	return nil
}

// Find returns the file of a path.
func (m *Manifest) Find(path string) (File, bool) {
	at, ok := slices.BinarySearchFunc(m.Files, path, func(f File, p string) int { return strings.Compare(f.Path, p) })
	if !ok {
		return File{}, false
	}
	return m.Files[at], true
}

// Bytes is the size of all files together.
func (m *Manifest) Bytes() (n int64) {
	for i := range m.Files {
		n += m.Files[i].Size
	}
	return n
}

// CheckPath reports whether a path may be that of a file or folder of a run.
func CheckPath(path string) error {
	switch {
	case path == "." || !fs.ValidPath(path):
		return fmt.Errorf("%q: is not a plain path such as notes/a.txt", strict.Clip(path, 128))
	case len(path) > MaxPath:
		return fmt.Errorf("%q: longer than %d bytes", strict.Clip(path, 128), MaxPath)
	case !utf8.ValidString(path) || strings.ContainsFunc(path, invisible):
		return fmt.Errorf("%q: has control characters", strict.Clip(path, 128))
	}
	return nil
}

// CheckGiven is CheckPath for a file that a run is given: the tools of each worker must be able to use it.
func CheckGiven(path string) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	parts := strings.Split(path, "/")
	if len(parts) > maxParts {
		return fmt.Errorf("%q: has more than %d parts", strict.Clip(path, 128), maxParts)
	}
	for _, part := range parts {
		switch {
		case len(part) > maxPart:
			return fmt.Errorf("%q: a part is longer than %d bytes", strict.Clip(path, 128), maxPart)
		case strings.HasPrefix(part, TempPrefix):
			return fmt.Errorf("%q: names that begin with %s are reserved", strict.Clip(path, 128), TempPrefix)
		}
	}
	return nil
}

// invisible runes make a path look like another one, or break a line of a log.
func invisible(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// HashOf names a content.
func HashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ValidHash reports whether a text has the form of a hash: 64 hexadecimal digits in lower case.
func ValidHash(hash string) bool {
	if len(hash) != hex.EncodedLen(sha256.Size) {
		return false
	}
	for i := range len(hash) {
		if c := hash[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
