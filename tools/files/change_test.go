package files_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
)

type step struct{ tool, args, want string }

func (d desk) play(t *testing.T, steps ...step) {
	t.Helper()
	for _, s := range steps {
		if diff := cmp.Diff(s.want, d.call(t, s.tool, s.args)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", s.tool, s.args, diff)
		}
	}
}

func (d desk) put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(d.dir, name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEdit(t *testing.T) {
	d := newDesk(t, sandbox.Limits{FileSize: 100})
	d.put(t, "a.txt", "one\ntwo\r\none two\naaa\n")
	d.put(t, "image", "\x00")
	d.play(t,
		step{
			"edit_file", `{"filePath":"a.txt","old":"one","new":"1"}`,
			"! a.txt: old occurs 2 times in the file, on lines 1, 3; give more of the text around the place that you mean, or set all",
		},
		step{
			"edit_file", `{"filePath":"a.txt","old":"aa","new":"b"}`,
			"! a.txt: old occurs 2 times in the file, on lines 4, 4; give more of the text around the place that you mean, or set all",
		},
		step{"edit_file", `{"filePath":"a.txt","old":"Two","new":"2"}`, "! a.txt: old is not in the file; it must be there exactly as given, white space and line ends included"},
		step{"edit_file", `{"filePath":"a.txt","old":"","new":"2"}`, "! old: must not be empty; to make a file, or to replace all of it, use write_file"},
		step{"edit_file", `{"filePath":"a.txt","old":"2","new":"2"}`, "! new: is the same as old, so nothing would change"},
		step{"edit_file", `{"filePath":"none","old":"1","new":"2"}`, "! none: does not exist"},
		step{"edit_file", `{"filePath":"image","old":"1","new":"2"}`, "! image: is not UTF-8 text but 1 bytes of something else"},
		step{
			"edit_file", `{"filePath":"a.txt","old":"one","new":"` + strings.Repeat("x", 60) + `","all":true}`,
			"! a.txt: the content has 135 bytes, and a file may have 100",
		},
	)
	d.play(t,
		step{"edit_file", `{"filePath":"a.txt","old":"\r\none","new":"\r\n1"}`, "Replaced the text once in a.txt"},
		step{"edit_file", `{"filePath":"./a.txt","old":"a","new":"","all":true}`, "Replaced the text 3 times in ./a.txt"},
		step{"read_file", `{"filePath":"a.txt"}`, "one\ntwo\r\n1 two\n\n"},
	)
}

// An edit takes little time and memory however often a text is there.
func TestEditOfLargeTexts(t *testing.T) {
	d := newDesk(t, sandbox.Limits{})
	d.put(t, "a", strings.Repeat("a", 1<<20))
	half := strings.Repeat("a", 1<<19)
	got := d.call(t, "edit_file", `{"filePath":"a","old":"`+half+`","new":"b"}`)
	if !strings.HasPrefix(got, "! a: old occurs at least 1000 times in the file, on lines 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 …; give more") {
		t.Error(got)
	}
	got = d.call(t, "edit_file", `{"filePath":"a","old":"a","new":"`+half+`","all":true}`)
	if want := "! a: would have 549755813888 bytes; a file that is edited may have 16777216"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A run that is another worker's by now changes nothing.
func TestBeginIsAskedBeforeTheEffect(t *testing.T) {
	d := newDesk(t, sandbox.Limits{})
	d.put(t, "a", "old")
	lost := errors.New("the run is another worker's")
	for name, args := range map[string]string{
		"edit_file": `{"filePath":"a","old":"old","new":"new"}`, "write_files": `{"files":[{"filePath":"a","content":"new"},{"filePath":"n/b","content":""}]}`,
	} {
		_, err := d.set.Call(t.Context(), name, tools.Call{Arguments: []byte(args), Workspace: d.ws, Begin: func() error { return lost }})
		if !errors.Is(err, lost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.play(t, step{"list_files", `{}`, "a"}, step{"read_file", `{"filePath":"a"}`, "old"})
}

func TestMoveDeleteAndMake(t *testing.T) {
	d := newDesk(t, sandbox.Limits{Depth: 3})
	d.put(t, "a", "text")
	d.put(t, "b", "")
	d.play(t,
		step{"move_file", `{"from":"a","to":"b"}`, "! b: exists already"},
		step{"move_file", `{"from":"none","to":"c"}`, "! none: does not exist"},
		step{"move_file", `{"from":"a","to":"a"}`, "! a: exists already"},
		step{"move_file", `{"from":"a","to":"a/b"}`, "! a/b: a is a file, not a folder"},
		step{"move_file", `{"from":"a","to":"d/e/c"}`, "Moved a to d/e/c"},
		step{"move_file", `{"from":"d/e","to":"f"}`, "! d/e: is a folder"},
		step{"read_file", `{"filePath":"d/e/c"}`, "text"},
		step{"delete_file", `{"path":"d"}`, "! d: is a folder that is not empty"},
		step{"delete_file", `{"path":"d/e/c"}`, "Deleted d/e/c"},
		step{"delete_file", `{"path":"d/e/c"}`, "! d/e/c: does not exist"},
		step{"delete_file", `{"path":"d/e"}`, "Deleted d/e"},
		step{"delete_file", `{"path":"."}`, "! .: is a folder"},
		step{"make_dir", `{"folderPath":"x/y"}`, "The folder x/y is there"},
		step{"make_dir", `{"folderPath":"x/y"}`, "The folder x/y is there"},
		step{"make_dir", `{"folderPath":"b"}`, "! b: exists already and is not a folder"},
		step{"make_dir", `{"folderPath":"x/y/z"}`, "! x/y/z: a folder must not have more than 2 parts"},
		step{"write_file", `{"filePath":"x/y/z","content":""}`, "Wrote 0 bytes to x/y/z"},
		step{"list_files", `{}`, "b\nx/y/z"},
	)
}

func TestManyAtOnce(t *testing.T) {
	d := newDesk(t, sandbox.Limits{Files: 5, FileSize: 60_000})
	d.put(t, "image", "\xff")
	d.play(t,
		step{"write_files", `{"files":[{"filePath":"a","content":"A"},{"filePath":"d/b","content":"B\n"}]}`, "Wrote 2 files with 3 bytes"},
		step{
			"write_files", `{"files":[{"filePath":"a","content":"new"},{"filePath":"e/b","content":""}]}`,
			"! e/b: the workspace is full: it may have 5 files and folders, 32 deep (none of the files was written)",
		},
		step{"write_files", `{"files":[{"filePath":"a","content":"new"},{"filePath":"../b","content":""}]}`, "! ../b: must stay inside the workspace (none of the files was written)"},
		step{"write_files", `{"files":[{"filePath":"a","content":"1"},{"filePath":"./a","content":"2"}]}`, "! ./a: is named twice (none of the files was written)"},
		step{"write_files", `{"files":[]}`, "! files: must have 1 to 100 files, not 0"},
		step{"write_files", `{"files":[{"filePath":"a","content":"x","mode":7}]}`, `! Invalid arguments for write_files: "files[0].mode" is unknown (known: content, filePath).`},
		step{"read_files", `{"filePaths":["a","d/b","none","image","../x"]}`, "== a (1 bytes)\nA\n== d/b (2 bytes)\nB\n\n== none: does not exist\n" +
			"== image: is not UTF-8 text but 1 bytes of something else\n== ../x: must stay inside the workspace"},
		step{"read_files", `{"filePaths":["none"]}`, "! == none: does not exist"},
	)
	d.put(t, "long", strings.Repeat("x", 54_000))
	got := d.call(t, "read_files", `{"filePaths":["long","d/b","a","long","long"]}`)
	if len(got) > 65_000 || !strings.HasSuffix(got, "\n== a (1 bytes)\nA\n== 2 files do not fit; read them with read_file or another read_files: long long") {
		t.Errorf("%d bytes: … %s", len(got), got[max(0, len(got)-200):])
	}
	var names []string
	for range 101 {
		names = append(names, `"a"`)
	}
	d.play(t, step{"read_files", fmt.Sprintf(`{"filePaths":[%s]}`, strings.Join(names, ",")), "! filePaths: must have 1 to 100 paths, not 101"})
}

// Calls that cannot disturb each other run together.
func TestResources(t *testing.T) {
	set, err := tools.NewSet(all(t)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, with, b, and string
		want            bool
	}{
		{"search_files", `{"pattern":"x"}`, "read_files", `{"filePaths":["a"]}`, true},
		{"search_files", `{"pattern":"x"}`, "write_file", `{"filePath":"a","content":""}`, false},
		{"write_files", `{"files":[{"filePath":"d/a","content":""},{"filePath":"d/b","content":""}]}`, "write_file", `{"filePath":"e","content":""}`, true},
		{"write_files", `{"files":[{"filePath":"d/a","content":""},{"filePath":"D/b","content":""}]}`, "write_file", `{"filePath":"d/c","content":""}`, false},
		{"write_files", `{"files":[{"filePath":"d","content":""},{"filePath":"e","content":""}]}`, "read_file", `{"filePath":"f"}`, false},
		{"make_dir", `{"folderPath":"d"}`, "write_file", `{"filePath":"d/c","content":""}`, false},
		{"make_dir", `{"folderPath":"d"}`, "write_file", `{"filePath":"dc","content":""}`, true},
		{"read_files", `{"filePaths":["d/a","d/b"]}`, "write_file", `{"filePath":"e","content":""}`, true},
		{"edit_file", `{"filePath":"a","old":"x","new":"y"}`, "read_file", `{"filePath":"b"}`, false},
		{"move_file", `{"from":"a","to":"b"}`, "read_file", `{"filePath":"c"}`, false},
		{"delete_file", `{"path":"a"}`, "read_file", `{"filePath":"c"}`, false},
	} {
		a, b := set.Claim(c.a, []byte(c.with)), set.Claim(c.b, []byte(c.and))
		if a.Beside(b) != c.want || b.Beside(a) != c.want {
			t.Errorf("%s%s beside %s%s: %v, want %v", c.a, c.with, c.b, c.and, a.Beside(b), c.want)
		}
	}
}

func quoted(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
