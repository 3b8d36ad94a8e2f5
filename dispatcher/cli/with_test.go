package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

// A task is given files from here, as text, as data, and under another name.
func TestSubmitWithFiles(t *testing.T) {
	f := newFleet(t)
	at := folderOfFiles(t)
	f.run(t, "submit", "Count.", "--id", "again", "--with", at("c.txt"), "--with", "data/d="+at("d.bin"), "--with", at("run.sh"))
	c, done, err := f.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	want := messages.Task{ID: "again", Input: messages.TextInput("Count."), Files: []messages.TaskFile{
		{Path: "c.txt", Text: new("three ships\n")}, {Path: "data/d", Data: []byte{0xff, 0xfe}}, {Path: "run.sh", Text: new("#!/bin/sh\n"), Exec: true},
	}}
	if _, err := c.Submit(t.Context(), want); err != nil { // is accepted for the same task alone
		t.Error(err)
	}
	for given, want := range map[string]string{
		at("none"):            "--with: open " + at("none") + ": no such file or directory: check the name and that this process may read it",
		"x=" + at("."):        "--with: " + at(".") + " is a folder: name a file",
		"../x=" + at("c.txt"): `files[0].path: "../x": is not a plain path such as notes/a.txt`,
		"/x=" + at("c.txt"):   `files[0].path: "/x": is not a plain path such as notes/a.txt`,
		at("large"):           "--with: read " + at("large") + ": larger than 524288 bytes, which is the limit",
	} {
		_, _, err := executeWith(t, f.connect, "", "submit", "x", "--with", given)
		if _, is := errors.AsType[*render.UsageError](err); !is || err.Error() != want {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}

// folderOfFiles has files of each kind, and returns where each is.
func folderOfFiles(t *testing.T) (at func(name string) string) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string]string{"c.txt": "three ships\n", "d.bin": "\xff\xfe", "run.sh": "#!/bin/sh\n", "large": strings.Repeat("x", 512<<10+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	return func(name string) string { return filepath.Join(dir, name) }
}

// A file with a task says from where its files are read, relative to its folder.
func TestTaskFileSaysFromWhere(t *testing.T) {
	at := folderOfFiles(t)
	read := func(task string) (*messages.Task, error) {
		t.Helper()
		if err := os.WriteFile(at("task.json"), []byte(task), 0o600); err != nil {
			t.Fatal(err)
		}
		data, err := render.ReadTask(&cobra.Command{}, at("task.json"))
		if err != nil {
			return nil, err
		}
		return messages.DecodeTask(data)
	}
	task, err := read(`{"input":"x","files":[{"from":"./c.txt"},{"path":"b/d","from":"d.bin","exec":true},{"path":"s","from":"` + at("run.sh") + `"},{"path":"u","from":"run.sh","exec":false},{"path":"t","text":"hi"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	want := messages.Task{Tenant: "default", Agent: "default", Priority: messages.PriorityNormal, Input: messages.TextInput("x"), Files: []messages.TaskFile{
		{Path: "c.txt", Text: new("three ships\n")},
		{Path: "b/d", Data: []byte{0xff, 0xfe}, Exec: true},
		{Path: "s", Text: new("#!/bin/sh\n"), Exec: true},
		{Path: "t", Text: new("hi")},
		{Path: "u", Text: new("#!/bin/sh\n")},
	}}
	if task.Fingerprint() != want.Fingerprint() {
		t.Errorf("the task is %s", task.Encode())
	}
	for body, want := range map[string]string{
		`{"input":"x","files":[{"path":"a","from":"none"}]}`:                "files[0].from: open " + at("none") + ": no such file or directory: check the name and that this process may read it",
		`{"input":"x","files":[{"path":"a","from":"c.txt","text":"hi"}]}`:   "files[0].from: give exactly one of from, text, data and hash",
		`{"input":"x","files":[{"path":"a","from":"c.txt","mode":"0700"}]}`: "files[0].mode: unknown field",
		`{"input":"x","files":[{"path":"a","from":7}]}`:                     "files[0].from: unknown field",
		`{"input":"x","input":"y","files":[{"from":"c.txt"}]}`:              "input: given twice",
		`{"input":"x","files":"c.txt"}`:                                     "files: must be an array, not a string",
	} {
		if _, err := read(body); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}
