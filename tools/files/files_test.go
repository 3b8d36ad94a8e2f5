package files_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/files"
	"github.com/longshore-run/longshore/tools/toolstest"
)

func all(t *testing.T) []tools.Tool {
	t.Helper()
	ts, err := files.Tools()
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

func TestConformance(t *testing.T) {
	cases := map[string][]toolstest.Case{
		"list_files": {{}, {Arguments: "{}", Files: map[string]string{"a": "", "b/c": ""}}},
		"read_file": {
			{Arguments: `{"filePath":"a"}`, Files: map[string]string{"a": "text"}},
			{Arguments: `{"filePath":"a"}`, Files: map[string]string{"a": "\xff\xfe"}, Fails: true},
			{Arguments: `{"filePath":"../a"}`, Fails: true},
		},
		"write_file": {
			{Arguments: `{"filePath":"n/a","content":"text"}`},
			{Arguments: `{"filePath":"a","content":""}`, Files: map[string]string{"a": "old"}},
			{Arguments: `{"filePath":"/a","content":""}`, Fails: true},
		},
		"edit_file": {
			{Arguments: `{"filePath":"a","old":"x","new":"y"}`, Files: map[string]string{"a": "1x2"}},
			{Arguments: `{"filePath":"a","old":"x","new":"y"}`, Files: map[string]string{"a": "xx"}, Fails: true},
			{Arguments: `{"filePath":"../a","old":"x","new":"y"}`, Fails: true},
		},
		"search_files": {
			{Arguments: `{"pattern":"x+"}`, Files: map[string]string{"a": "1x2", "b/c": "\xff"}},
			{Arguments: `{"glob":"*.md"}`, Files: map[string]string{"a.md": ""}},
			{Arguments: `{"pattern":"(x*)*{9}y","glob":"{a,"}`, Fails: true},
			{Arguments: `{"pattern":"(?:a?){60}b"}`, Files: map[string]string{"a": strings.Repeat(strings.Repeat("a", 1<<12)+"\n", 3)}}, // slow
		},
		"move_file":   {{Arguments: `{"from":"a","to":"d/b"}`, Files: map[string]string{"a": "x"}}, {Arguments: `{"from":"a","to":"/b"}`, Fails: true}},
		"delete_file": {{Arguments: `{"path":"a"}`, Files: map[string]string{"a": "x"}}, {Arguments: `{"path":".."}`, Fails: true}},
		"make_dir":    {{Arguments: `{"folderPath":"a/b"}`}, {Arguments: `{"folderPath":"a"}`, Files: map[string]string{"a": "x"}, Fails: true}},
		"read_files": {
			{Arguments: `{"filePaths":["a","b"]}`, Files: map[string]string{"a": "x"}}, {Arguments: `{"filePaths":[]}`, Fails: true}, {Arguments: `{"filePaths":["../a"]}`, Fails: true},
		},
		"write_files": {
			{Arguments: `{"files":[{"filePath":"a","content":"x"},{"filePath":"d/b","content":""}]}`, Files: map[string]string{"a": "old"}},
			{Arguments: `{"files":[{"filePath":"a","content":"x"},{"filePath":"/b","content":""}]}`, Fails: true},
			{Arguments: `{"files":[]}`, Fails: true},
		},
	}
	for i, tool := range all(t) {
		of := cases[tool.Spec().Name]
		for n := range of {
			of[n].Restarted = func() (tools.Tool, error) { return all(t)[i], nil }
		}
		t.Run(tool.Spec().Name, func(t *testing.T) { toolstest.Run(t, tool, of...) })
	}
}

func TestMeta(t *testing.T) {
	ws, err := sandbox.Open(t.TempDir(), sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	set, err := tools.NewSet(all(t)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, args, want string }{
		{"make_dir", `{"folderPath":"./notes"}`, `{"path":"notes"}`},
		{"write_file", `{"filePath":"a.txt","content":"one"}`, `{"bytes":3}`},
		{"move_file", `{"from":"a.txt","to":"notes/b.txt"}`, `{"from":"a.txt","to":"notes/b.txt"}`},
		{"list_files", `{}`, `{"files":1,"truncated":false}`},
		{"delete_file", `{"path":"notes/b.txt"}`, `{"path":"notes/b.txt"}`},
	} {
		r, err := set.Call(t.Context(), c.tool, tools.Call{Arguments: []byte(c.args), Workspace: ws})
		if err != nil || r.IsError {
			t.Fatalf("%s: %+v, %v", c.tool, r, err)
		}
		if got, err := json.Marshal(r.Meta); err != nil || string(got) != c.want {
			t.Errorf("%s: meta %s, want %s", c.tool, got, c.want)
		}
	}
}

func TestSpecs(t *testing.T) {
	path := `"filePath":{"type":"string","description":"Path relative to the workspace, such as notes/a.txt"}`
	want := map[string]messages.ToolSpec{
		"list_files": {Effect: messages.EffectRead, InputSchema: json.RawMessage(
			`{"type":"object","properties":{},"additionalProperties":false}`)},
		"read_file": {Effect: messages.EffectRead, InputSchema: json.RawMessage(
			`{"type":"object","properties":{` + path + `,"offset":{"type":"integer","description":"Byte to start at; 0 by default"},` +
				`"limit":{"type":"integer","description":"Bytes to return at most; 65000 by default and at most"}},` +
				`"required":["filePath"],"additionalProperties":false}`)},
		"write_file": {Effect: messages.EffectIdempotent, InputSchema: json.RawMessage(
			`{"type":"object","properties":{` + path + `,"content":{"type":"string","description":` +
				`"The whole new content of the file"}},"required":["filePath","content"],"additionalProperties":false}`)},
	}
	for _, tool := range all(t) {
		got := tool.Spec()
		if !got.SafeByDefault {
			t.Errorf("%s is not safe by default", got.Name)
		}
		w, golden := want[got.Name]
		if !golden {
			continue
		}
		if got.Effect != w.Effect {
			t.Errorf("%s: effect %s, want %s", got.Name, got.Effect, w.Effect)
		}
		if diff := cmp.Diff(decode(t, w.InputSchema), decode(t, got.InputSchema)); diff != "" {
			t.Errorf("%s: schema (-want +got):\n%s", got.Name, diff)
		}
	}
}

func decode(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// desk makes calls as a runner does.
type desk struct {
	set *tools.Set
	ws  *sandbox.Workspace
	dir string
}

func newDesk(t *testing.T, l sandbox.Limits) desk {
	t.Helper()
	set, err := tools.NewSet(all(t)...)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ws, err := sandbox.Open(dir, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	return desk{set, ws, dir}
}

// call returns the text of the result; that of a failure begins with "! ".
func (d desk) call(t *testing.T, name, args string) string {
	t.Helper()
	specs, err := d.set.Specs(d.set.Names())
	if err != nil {
		t.Fatal(err)
	}
	raw, refusal := d.set.Check(messages.ToolCall{Name: name, Arguments: args}, specs)
	if refusal != nil {
		return "! " + refusal.Content[0].Text
	}
	r, err := d.set.Call(t.Context(), name, tools.Call{Arguments: raw, Workspace: d.ws})
	if err != nil {
		t.Fatal(err)
	}
	if r.IsError {
		return "! " + r.Content[0].Text
	}
	return r.Content[0].Text
}

func TestCalls(t *testing.T) {
	d := newDesk(t, sandbox.Limits{FileSize: 100, Files: 6})
	if err := os.WriteFile(filepath.Join(d.dir, "image.png"), []byte("\x89PNG\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, args, want string }{
		{"list_files", ``, "image.png"},
		{"write_file", `{"filePath":"notes/a.txt","content":"Grüße, dock"}`, "Wrote 13 bytes to notes/a.txt"},
		{"write_file", `{"filePath":"./b.txt","content":""}`, "Wrote 0 bytes to ./b.txt"},
		{"list_files", `{}`, "b.txt\nimage.png\nnotes/a.txt"},
		{"read_file", `{"filePath":"notes/a.txt"}`, "Grüße, dock"},
		{"read_file", `{"filePath":"b.txt"}`, ""},
		{"read_file", `{"filePath":"image.png"}`, "! image.png: is not UTF-8 text but 6 bytes of something else"},
		{"read_file", `{"filePath":"notes"}`, "! notes: is a folder"},
		{"read_file", `{"filePath":"none"}`, "! none: does not exist"},
		{"read_file", `{"filePath":"../x"}`, "! ../x: must stay inside the workspace"},
		{"read_file", `{"path":"b.txt"}`, `! Invalid arguments for read_file: "filePath" is missing; "path" is unknown (known: filePath, limit, offset).`},
		{"write_file", `{"filePath":"/etc/x","content":""}`, `! /etc/x: must be relative to the workspace, without a leading "/"`},
		{"write_file", `{"filePath":"big","content":"` + strings.Repeat("x", 101) + `"}`, "! big: the content has 101 bytes, and a file may have 100"},
		{"write_file", `{"filePath":"1/2/3","content":""}`, "! 1/2/3: the workspace is full: it may have 6 files and folders, 32 deep"},
	} {
		if diff := cmp.Diff(c.want, d.call(t, c.tool, c.args)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.tool, c.args, diff)
		}
	}
}

// A long file is read in pieces that together are the file, and no character is cut.
func TestFilesAreReadInPieces(t *testing.T) {
	d := newDesk(t, sandbox.Limits{})
	want := strings.Repeat("dock é\n", 20_000)
	if err := os.WriteFile(filepath.Join(d.dir, "long"), []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for offset, pieces := 0, 0; ; pieces++ {
		text := d.call(t, "read_file", fmt.Sprintf(`{"filePath":"long","offset":%d}`, offset))
		if len(text) > 64<<10 || pieces > 10 {
			t.Fatalf("piece %d has %d bytes", pieces, len(text))
		}
		body, note, more := strings.Cut(text, "\n(The file has ")
		got.WriteString(body)
		if !more {
			break
		}
		if _, err := fmt.Sscanf(note, "160000 bytes; read on with offset %d.)", &offset); err != nil {
			t.Fatalf("%q: %v", note, err)
		}
	}
	if got.String() != want {
		t.Error("the pieces are not the file")
	}
	for args, want := range map[string]string{
		`{"filePath":"long","limit":5}`:            "dock \n(The file has 160000 bytes; read on with offset 5.)",
		`{"filePath":"long","offset":5,"limit":1}`: "é\n(The file has 160000 bytes; read on with offset 7.)",
		`{"filePath":"long","offset":6}`:           "! offset: is in the middle of a character",
		`{"filePath":"long","offset":160000}`:      "",
		`{"filePath":"long","offset":160001}`:      "! offset: must be 0 to 160000, the size of the file",
		`{"filePath":"long","offset":-1}`:          "! offset: must be 0 to 160000, the size of the file",
		`{"filePath":"long","limit":65001}`:        "! limit: must be from 1 to 65000",
	} {
		if got := d.call(t, "read_file", args); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

func TestListOfOddNames(t *testing.T) {
	d := newDesk(t, sandbox.Limits{})
	for _, name := range []string{"two\nlines", `back\slash`, "\xff", `"quoted"`, "späť 文.txt", "with space"} {
		if err := os.WriteFile(filepath.Join(d.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.Join([]string{
		`"\"quoted\""`, `"back\\slash"`, "späť 文.txt", `"two\nlines"`, "with space", `"\xff"`,
	}, "\n")
	if diff := cmp.Diff(want, d.call(t, "list_files", "")); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func TestListIsBounded(t *testing.T) {
	d := newDesk(t, sandbox.Limits{})
	for i := range 1001 {
		if err := os.WriteFile(filepath.Join(d.dir, fmt.Sprintf("f%04d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(d.call(t, "list_files", ""), "\n")
	if len(lines) != 1001 || lines[0] != "f0000" || lines[999] != "f0999" {
		t.Errorf("%d lines: %s … %s", len(lines), lines[0], lines[len(lines)-1])
	}
	if got, want := lines[len(lines)-1], "(There are more files; these are 1000 of them.)"; got != want {
		t.Errorf("last line is %q, want %q", got, want)
	}
}

// What the model cannot correct is an error of the platform, so the call is made again elsewhere.
func TestPlatformErrors(t *testing.T) {
	d := newDesk(t, sandbox.Limits{})
	if err := d.ws.Close(); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]string{
		"list_files": `{}`, "read_file": `{"filePath":"a"}`, "write_file": `{"filePath":"a","content":""}`,
		"edit_file": `{"filePath":"a","old":"x","new":"y"}`, "search_files": `{"pattern":"x"}`, "move_file": `{"from":"a","to":"b"}`,
		"delete_file": `{"path":"a"}`, "make_dir": `{"folderPath":"a"}`, "read_files": `{"filePaths":["a"]}`,
		"write_files": `{"files":[{"filePath":"a","content":""}]}`,
	} {
		for _, ws := range []*sandbox.Workspace{d.ws, nil} {
			_, err := d.set.Call(t.Context(), name, tools.Call{Arguments: json.RawMessage(args), Workspace: ws})
			if err == nil {
				t.Errorf("%s without a usable workspace gave a result", name)
			} else if strings.Contains(err.Error(), d.dir) {
				t.Errorf("%s: %v shows the host's path", name, err)
			}
		}
	}
}
