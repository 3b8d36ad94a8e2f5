package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages/manifest"
)

// PathError says what is wrong with a path or the file there, in words for the model or user that chose the path. It never
// contains a path of the host. Every other error of a Workspace is a failure of the platform.
type PathError struct {
	Path   string // as the caller gave it
	Reason string
	err    error
}

func (e *PathError) Error() string { return show(e.Path) + ": " + e.Reason }

// Unwrap gives the system's error, which is fs.ErrNotExist for a missing file, or nil.
func (e *PathError) Unwrap() error { return e.err }

const (
	maxPath  = 4096 // bytes; what Linux takes in one call
	maxShown = 200  // bytes of a path in an error
)

// TempPrefix begins the name of a file that is being written. Callers may not use it.
const TempPrefix = manifest.TempPrefix

// clean checks a path by its text alone and returns the form that os.Root gets. Root would refuse most of this
// itself, but not before it has walked a part of the path: a path with ".." must never reach it.
func clean(name string, depth int) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		return "", &PathError{Path: name, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case strings.TrimSpace(name) == "":
		return bad("must not be empty; name a file such as notes/a.txt")
	case len(name) > maxPath:
		return bad("must not be longer than %d bytes", maxPath)
	case !utf8.ValidString(name):
		return bad("must be UTF-8 text")
	case strings.ContainsFunc(name, invisible):
		return bad("must not contain control characters")
	case strings.HasPrefix(name, "/"):
		return bad(`must be relative to the workspace, without a leading "/"`)
	}
	p := name
	for strings.HasPrefix(p, "./") {
		p = p[len("./"):]
	}
	parts := strings.Split(p, "/")
	for _, part := range parts {
		switch {
		case part == "..":
			return bad("must stay inside the workspace")
		case strings.HasPrefix(part, TempPrefix):
			return bad("names that begin with %s are reserved", TempPrefix)
		}
	}
	if len(parts) > depth {
		return bad("must not have more than %d parts", depth)
	}
	if p == "." {
		return bad("is a folder")
	}
	if !fs.ValidPath(p) {
		return bad(`must be a plain path such as notes/a.txt, without empty or "." parts`)
	}
	return p, nil
}

// invisible runes make a path look like another one, or break a line of a log.
func invisible(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// show makes a path fit for an error text.
func show(name string) string {
	s, more := name, ""
	if len(s) > maxShown {
		s, more = strings.ToValidUTF8(s[:maxShown], ""), "…"
	}
	if strings.TrimSpace(s) == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, invisible) {
		s = strconv.Quote(s)
	}
	return s + more
}

// translate turns an error of os.Root into one that names only the caller's path: a *PathError when another path
// or content may do better.
func translate(verb, name string, err error) error {
	if own, ok := errors.AsType[*PathError](err); ok {
		return own
	}
	inner := bare(err)
	if reason := reasonOf(inner); reason != "" {
		return &PathError{Path: name, Reason: reason, err: inner}
	}
	return fmt.Errorf("%s %s: %w", verb, show(name), inner)
}

// reasonOf says an error of the system in words; empty when no other path would do better.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.Is(err, syscall.ENAMETOOLONG):
		return "a part of the path is too long"
	case errors.Is(err, syscall.ENOTDIR):
		return "a part of the path is a file, not a folder"
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, fs.ErrExist):
		return "is a folder"
	case errors.Is(err, syscall.ELOOP):
		return "is a symbolic link"
	case errors.Is(err, syscall.ENXIO):
		return notRegular
	case errors.Is(err, syscall.EXDEV), errors.Is(err, syscall.EBUSY): // EBUSY: a mount
		return otherDevice
	case strings.Contains(err.Error(), "escapes"): // os.Root has no sentinel for it
		return "must stay inside the workspace"
	default:
		return ""
	}
}

const notRegular = "is not a regular file"
