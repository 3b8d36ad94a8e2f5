package repository_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/repository/repositorytest"
)

// Names that would lead out of the folder, or to where git keeps its own, are not in any commit of git.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := repositorytest.New(t)
	blob := s.Blob("x")
	c := client(t, s.Host)
	for _, name := range []string{"..", ".", "", "../x", "a/../../x", "/etc/passwd", "a/b", ".git", ".GIT"} {
		inner := s.Tree(repositorytest.Entry{Mode: "100644", Name: name, ID: blob})
		for _, tree := range []string{inner, s.Tree(repositorytest.Entry{Mode: "40000", Name: "sub", ID: inner}), s.Tree(repositorytest.Entry{Mode: "40000", Name: name, ID: s.Tree()})} {
			refused(t, c, messages.Repository{URL: s.URL, Commit: s.Commit(tree)}, "commit", "is a name that no file of a repository may have")
		}
	}
	twice := repositorytest.Entry{Mode: "100644", Name: "a", ID: blob}
	passes(t, c, messages.Repository{URL: s.URL, Commit: s.Commit(s.Tree(twice, twice))}, "a is twice in a folder")
	passes(t, c, messages.Repository{URL: s.URL, Commit: s.Commit(s.Tree(twice, repositorytest.Entry{Mode: "40000", Name: "a", ID: s.Tree()}))}, "a is twice in a folder")
	passes(t, c, messages.Repository{URL: s.URL, Commit: s.Commit(s.Tree(repositorytest.Entry{Mode: "100777", Name: "a", ID: blob}))}, `a is of the kind "100777"`)
	passes(t, c, messages.Repository{URL: s.URL, Commit: s.Commit(s.Tree(repositorytest.Entry{Mode: "100644", Name: "a", ID: s.Tree()}))}, "the content of a is not in it")
	passes(t, c, messages.Repository{URL: s.URL, Commit: s.Commit(blob)}, "a folder of the commit is not in it")
}

// Folders of folders of the same folder are few objects and endless names.
func TestFolderBomb(t *testing.T) {
	t.Parallel()
	s := repositorytest.New(t)
	tree := s.Tree(repositorytest.Entry{Mode: "100644", Name: "f", ID: s.Blob("x")})
	empty := s.Tree()
	for range 30 {
		var files, folders []repositorytest.Entry
		for i := range 10 {
			files = append(files, repositorytest.Entry{Mode: "40000", Name: strconv.Itoa(i), ID: tree})
			folders = append(folders, repositorytest.Entry{Mode: "40000", Name: strconv.Itoa(i), ID: empty})
		}
		tree, empty = s.Tree(files...), s.Tree(folders...)
	}
	c := client(t, s.Host)
	for _, root := range []string{tree, empty} {
		refused(t, c, messages.Repository{URL: s.URL, Commit: s.Commit(root)}, "commit", "holds more files than may be fetched: see LONGSHORE_WORKSPACE_FILES")
	}
}

// Sizes are checked before anything is stored, whether the server tells the truth about them or not.
func TestHugeRepositories(t *testing.T) {
	t.Parallel()
	s := repositorytest.New(t)
	c := client(t, s.Host)
	commit := s.Files(map[string]string{"huge": strings.Repeat("x", 5<<20)})
	at := messages.Repository{URL: s.URL, Commit: commit}
	const tooLarge = "the commit is larger than may be fetched: unpacked it has more than 4194304 bytes"
	refused(t, c, at, "commit", tooLarge)

	many := make(map[string]string, 100_000)
	for i := range 100_000 {
		many[fmt.Sprintf("%d/%d", i%100, i)] = "alike"
	}
	refused(t, c, messages.Repository{URL: s.URL, Commit: s.Files(many)}, "commit", "holds more files than may be fetched: see LONGSHORE_WORKSPACE_FILES")

	zeros := make([]byte, 64<<20)
	s.Send(repositorytest.Pack(1, repositorytest.PackEntry(3, len(zeros), nil, zeros))) // 64 MiB in 64 KiB
	refused(t, c, at, "commit", tooLarge)
	s.Send(repositorytest.Pack(1, repositorytest.PackEntry(3, 10, nil, zeros))) // which are said to be 10
	passes(t, c, at, "an entry has more than the 10 bytes that it says")
	s.Send(repositorytest.Pack(1<<31, repositorytest.PackEntry(3, 1, nil, []byte("x"))))
	refused(t, c, at, "commit", "it has 2147483648 objects, and the limit is 4000")
}

// A delta of a few bytes makes an object of any size, and others can be made of that.
func TestDeltaBomb(t *testing.T) {
	t.Parallel()
	s := repositorytest.New(t)
	c := client(t, s.Host)
	at := messages.Repository{URL: s.URL, Commit: s.Files(project)}
	base := bytes.Repeat([]byte("x"), 64<<10)
	first := repositorytest.PackEntry(3, len(base), nil, base)
	delta := append([]byte{0x80, 0x80, 0x04}, 0x80, 0x80, 0x80, 0x80, 0x01) // of 64 KiB, 256 MiB
	delta = append(delta, bytes.Repeat([]byte{0x80}, 4096)...)              // all of the base, 4096 times
	ofs := func(n int) []byte {
		out := []byte{byte(n & 0x7f)}
		for n >>= 7; n > 0; n >>= 7 {
			n--
			out = append([]byte{byte(n&0x7f) | 0x80}, out...)
		}
		return out
	}
	s.Send(repositorytest.Pack(2, first, repositorytest.PackEntry(6, len(delta), ofs(len(first)), delta)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	refused(t, c, at, "commit", "the commit is larger than may be fetched")
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

// An answer that never ends is given up, of whatever it is.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	s := repositorytest.New(t)
	at := messages.Repository{URL: s.URL, Commit: s.Files(project)}
	endless := func(kind, begins, line string) {
		s.Before(func(w http.ResponseWriter, r *http.Request) bool {
			if kind == "result" && r.Method != http.MethodPost {
				return false
			}
			w.Header().Set("Content-Type", "application/x-git-upload-pack-"+kind)
			_, err := io.WriteString(w, begins)
			for err == nil {
				_, err = io.WriteString(w, line)
			}
			return true
		})
	}
	c := client(t, s.Host)
	endless("advertisement", repositorytest.Line("version 2\n"), repositorytest.Line("agent=x\n"))
	refused(t, c, at, "url", "does not answer as a git server does")
	endless("advertisement", "", "x")
	refused(t, c, at, "url", "does not answer as a git server does")
	endless("result", "", repositorytest.Line("shallow x\n"))
	refused(t, c, at, "commit", "is larger than may be fetched")
	endless("result", repositorytest.Line("packfile\n"), repositorytest.Line("\x02"+strings.Repeat("x", 60_000)))
	refused(t, c, at, "commit", "is larger than may be fetched")
}
