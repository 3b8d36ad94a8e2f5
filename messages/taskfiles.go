package messages

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/strict"
)

// Limits of the files that a task brings. More files, or larger ones, are uploaded and named by a manifest.
const (
	MaxTaskFiles    = 1000
	MaxTaskFileText = 512 << 10 // bytes of the text and data of all files, data as base64
	maxNamedSize    = 1 << 40   // of a content that a file names
)

// TaskFile is a file that the run has before its first step. Its content is exactly one of text, data, and the hash of one that
// was uploaded before. Or it stands for the files of a repository, and has nothing but that.
type TaskFile struct {
	Path string  `json:"path,omitempty" minLength:"1" maxLength:"4096"`      // in the run's folder, with slashes
	Text *string `json:"text,omitempty"`                                     // may be empty
	Data []byte  `json:"data,omitempty"`                                     // for what is not text
	Hash string  `json:"hash,omitempty" pattern:"^[0-9a-f]{64}$"`            // SHA-256 of an uploaded content, in hex
	Size int64   `json:"size,omitempty" minimum:"0" maximum:"1099511627776"` // bytes of that content
	Exec bool    `json:"exec,omitempty"`                                     // its owner may execute it
	// Git is a repository whose files the run has, in place of one file.
	Git *Repository `json:"git,omitempty"`
}

// Content is the content of a file that brings it; false: it names one by its hash.
func (f *TaskFile) Content() (data []byte, ok bool) {
	switch {
	case f.Text != nil:
		return []byte(*f.Text), true
	case f.Data != nil:
		return f.Data, true
	default:
		return nil, false
	}
}

// Named is the file with the hash of its content in place of the content.
func (f *TaskFile) Named() TaskFile {
	data, ok := f.Content()
	if !ok { // it names one, or is a repository
		return *f
	}
	return TaskFile{Path: f.Path, Hash: manifest.HashOf(data), Size: int64(len(data)), Exec: f.Exec}
}

func (f *TaskFile) check() error {
	if f.Git != nil {
		if f.Path != "" || f.Text != nil || f.Data != nil || f.Hash != "" || f.Size != 0 || f.Exec {
			return &FieldError{Field: "git", Reason: "goes with no other field: its own path and into say which files are where"}
		}
		return strict.Under("git", f.Git.Check())
	}
	if err := manifest.CheckGiven(f.Path); err != nil {
		return &FieldError{Field: "path", Reason: err.Error()}
	}
	given := 0
	for _, is := range []bool{f.Text != nil, len(f.Data) > 0, f.Hash != ""} {
		if is {
			given++
		}
	}
	switch {
	case given == 0 && f.Data != nil:
		return &FieldError{Field: "data", Reason: `is empty: give text "" for an empty file`}
	case given != 1:
		return &FieldError{Field: "text", Reason: strict.Shown(f.Path) + ": give exactly one of text, data and hash"}
	case f.Text != nil && !utf8.ValidString(*f.Text):
		return &FieldError{Field: "text", Reason: "invalid UTF-8: give data"}
	case f.Hash == "" && f.Size != 0:
		return &FieldError{Field: "size", Reason: "goes with hash alone"}
	case f.Hash != "" && !manifest.ValidHash(f.Hash):
		return &FieldError{Field: "hash", Reason: "must be a SHA-256 as 64 hexadecimal digits in lower case"}
	case f.Size < 0 || f.Size > maxNamedSize:
		return &FieldError{Field: "size", Reason: fmt.Sprintf("must be 0 to %d", int64(maxNamedSize))}
	}
	return nil
}

// HasFiles reports whether the run has files before its first step.
func (t *Task) HasFiles() bool { return len(t.Files) > 0 || t.Manifest != "" }

// NamesFiles reports whether the task names contents that must have been stored before.
func (t *Task) NamesFiles() bool {
	return t.Manifest != "" || slices.ContainsFunc(t.Files, func(f TaskFile) bool { return f.Hash != "" })
}

// FetchesFiles reports whether the task names a repository.
func (t *Task) FetchesFiles() bool {
	return slices.ContainsFunc(t.Files, func(f TaskFile) bool { return f.Git != nil })
}

// FirstFiles are the files that a task lists, with the hashes of those that it brings; nil: it lists none. The files of repositories
// are not among them.
func (t *Task) FirstFiles() *manifest.Manifest {
	if len(t.Files) == 0 {
		return nil
	}
	m := &manifest.Manifest{Files: make([]manifest.File, 0, len(t.Files))}
	for _, f := range named(t.Files) {
		if f.Git == nil {
			m.Files = append(m.Files, manifest.File{Path: f.Path, Size: f.Size, Hash: f.Hash, Exec: f.Exec})
		}
	}
	return m
}

// NameFiles puts hashes in place of the contents that a task brings, which are stored.
func (t *Task) NameFiles() { t.Files = named(t.Files) }

// named are files with hashes in place of their contents, sorted by path.
func named(files []TaskFile) []TaskFile {
	if len(files) == 0 {
		return nil
	}
	out := make([]TaskFile, len(files))
	for i := range files {
		out[i] = files[i].Named()
	}
	slices.SortStableFunc(out, func(a, b TaskFile) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func (t *Task) checkFiles() error {
	switch {
	case !t.HasFiles():
		return nil
	case len(t.Files) > 0 && t.Manifest != "":
		return &FieldError{Field: "manifest", Reason: "give either files or manifest, not both"}
	case t.Workspace != "":
		return &FieldError{Field: "workspace", Reason: "a folder that runs share is used as it is: leave out files and manifest"}
	case t.Manifest != "" && !manifest.ValidHash(t.Manifest):
		return &FieldError{Field: "manifest", Reason: "must be a SHA-256 as 64 hexadecimal digits in lower case"}
	case len(t.Files) > MaxTaskFiles:
		return &FieldError{Field: "files", Reason: fmt.Sprintf("more than %d: upload them and give their manifest", MaxTaskFiles)}
	}
	at, size, repositories := make(map[string]int, len(t.Files)), 0, 0
	for i := range t.Files {
		f := &t.Files[i]
		field := fmt.Sprintf("files[%d]", i)
		if err := f.check(); err != nil {
			return strict.Under(field, err)
		}
		if f.Git != nil {
			if repositories++; repositories > MaxRepositories {
				return &FieldError{Field: field + ".git", Reason: fmt.Sprintf("is one too many: a task may have %d repositories", MaxRepositories)}
			}
			continue
		}
		if _, twice := at[f.Path]; twice {
			return &FieldError{Field: field + ".path", Reason: fmt.Sprintf("%q: is given twice", strict.Clip(f.Path, 128))}
		}
		at[f.Path] = i
		if f.Text != nil {
			size += len(*f.Text)
		}
		if size += base64.StdEncoding.EncodedLen(len(f.Data)); size > MaxTaskFileText {
			return &FieldError{Field: field, Reason: fmt.Sprintf(
				"%s: with it the files are larger than %d bytes: upload contents and give their hashes", strict.Shown(f.Path), MaxTaskFileText)}
		}
	}
	for i := range t.Files {
		path := t.Files[i].Path
		for end := range path {
			if other, ok := at[path[:end]]; ok && path[end] == '/' {
				return &FieldError{Field: fmt.Sprintf("files[%d].path", i), Reason: fmt.Sprintf(
					"%q: is below files[%d], which is a file", strict.Clip(path, 128), other)}
			}
		}
	}
	return nil
}

// MaxRepositories bounds the repositories of a task.
const MaxRepositories = 4

const (
	maxRepositoryURL = 2048
	commitDigits     = 40 // of a SHA-1 in hex
)

// Repository is a git repository at a commit, whose files a run has before its first step. The worker that begins the run fetches it.
type Repository struct {
	URL    string `json:"url" minLength:"1" maxLength:"2048"`
	Commit string `json:"commit" pattern:"^[0-9a-f]{40}$"` // the whole hash: a branch would be another tomorrow
	Path   string `json:"path,omitempty" maxLength:"4096"` // folder of the repository; the default is all of it
	Into   string `json:"into,omitempty" maxLength:"4096"` // folder of the run's files; the default is their root
}

// Check returns a *FieldError. It does not repeat a URL, which may hold a password.
func (r *Repository) Check() error {
	if err := r.checkURL(); err != nil {
		return err
	}
	if err := r.checkCommit(); err != nil {
		return err
	}
	for _, folder := range []struct{ field, path string }{{"path", r.Path}, {"into", r.Into}} {
		if folder.path == "" {
			continue
		}
		if err := manifest.CheckGiven(folder.path); err != nil {
			return &FieldError{Field: folder.field, Reason: err.Error()}
		}
	}
	return nil
}

func (r *Repository) checkURL() error {
	wrong := func(reason string) error { return &FieldError{Field: "url", Reason: reason} }
	if err := strict.CheckText("url", r.URL, maxRepositoryURL); err != nil {
		return err
	}
	u, err := url.Parse(r.URL)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return wrong("must be a URL such as https://git.example.com/team/project.git")
	case u.User != nil:
		return wrong("holds a user or a password, which would be stored with the task: leave it out. The operator gives workers a credential in LONGSHORE_GIT_CREDENTIALS")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return wrong("must begin with https://")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(r.URL, "#"):
		return wrong("must have neither ? nor #: the commit and the folder have fields of their own")
	}
	return nil
}

// loopback reports whether a host is this machine, where plain HTTP is no risk.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func (r *Repository) checkCommit() error {
	wrong := func(format string, args ...any) error {
		return &FieldError{Field: "commit", Reason: fmt.Sprintf(format, args...)}
	}
	given := strict.Shown(r.Commit)
	switch hash := isHex(strings.ToLower(r.Commit)); {
	case r.Commit == "":
		return wrong("is missing: give the whole hash of a commit. `git rev-parse HEAD` prints that of a checkout")
	case hash && len(r.Commit) == 64:
		return wrong("is a SHA-256, and repositories with SHA-256 cannot be fetched")
	case hash && len(r.Commit) < commitDigits:
		return wrong("%s is a part of a hash, of which there may be several some day: give all %d digits. `git rev-parse %s` prints them", given, commitDigits, given)
	case hash && len(r.Commit) == commitDigits && r.Commit == strings.ToLower(r.Commit):
		return nil
	case hash:
		return wrong("must be a hash of %d hexadecimal digits in lower case", commitDigits)
	default:
		return wrong("%s is a branch or a tag, which may be another commit tomorrow: give the whole hash of a commit. `git ls-remote URL %s` prints it", given, given)
	}
}

func isHex(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') })
}
