package cli_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func TestWorkspaces(t *testing.T) {
	f := newFleet(t)
	if out, errs := f.run(t, "workspaces", "ls"); out != "" || errs != "no workspaces of tenant default\n" {
		t.Errorf("without any: %q, %q", out, errs)
	}
	const none = "workspace w of tenant default has no files: see `longshore workspaces ls`"
	f.fails(t, none, "workspaces", "show", "w")
	f.fails(t, none, "workspaces", "rm", "w")
	head := messages.Workspace{Manifest: strings.Repeat("a", 64), Files: 2, Bytes: 7, Run: "r1", Step: 3, Time: time.Now(), Turn: 4, Seq: 9}
	if err := f.controller.Workspaces.PutWorkspace(t.Context(), messages.DefaultTenant, "w", 0, head); err != nil {
		t.Fatal(err)
	}
	if out, _ := f.run(t, "workspaces", "ls"); !strings.HasPrefix(out, "NAME  FILES  BYTES  BY RUN  UPDATED") || !strings.Contains(out, "\nw     2      7      r1 ") {
		t.Errorf("list:\n%s", out)
	}
	if out, _ := f.run(t, "workspaces", "show", "w"); !strings.HasPrefix(out, "files       2, 7 bytes\nchanged by  r1 in step 3, ") {
		t.Errorf("show:\n%s", out)
	}
	if out, _ := f.run(t, "workspaces", "show", "w", "-o", "json"); !strings.Contains(out, `"run":"r1","step":3`) {
		t.Errorf("show: %s", out)
	}
	if out, _ := f.run(t, "workspaces", "rm", "w"); out != "workspace w has no files now; it had 2\n" {
		t.Error(out)
	}
	f.fails(t, none, "workspaces", "show", "w")
	for _, wrong := range [][]string{{"workspaces", "show"}, {"workspaces", "rm", "a", "b"}, {"workspaces", "show", "a.>"}} {
		if _, _, err := executeWith(t, f.connect, "", wrong...); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
}

// The files of a workspace are read without a run, as long as they are those that it has.
func TestFilesOfAWorkspace(t *testing.T) {
	f := withFiles(t)
	run := dispatcher.Run("files")
	c, done, err := f.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	f.fails(t, "no such file: the workspace has no files: see `longshore workspaces ls`", "files", "ls", "--workspace", "w")
	has := func(revision uint64, step int) *control.FileList {
		t.Helper()
		list, err := c.Files().List(t.Context(), run, dispatcher.FilesAt{Step: &step})
		if err != nil {
			t.Fatal(err)
		}
		head := messages.Workspace{Manifest: list.Manifest, Files: list.Count, Bytes: list.Bytes, Run: run.Run, Step: step, Time: time.Now(), Turn: uint64(step), Seq: 9}
		if err := f.controller.Workspaces.PutWorkspace(t.Context(), messages.DefaultTenant, "w", revision, head); err != nil {
			t.Fatal(err)
		}
		return list
	}
	before := has(0, 1)
	_, revision, err := f.controller.Workspaces.Workspace(t.Context(), messages.DefaultTenant, "w")
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := f.run(t, "files", "ls", "--workspace", "w"); !strings.Contains(out, "\ngone.txt  4     ") {
		t.Errorf("list:\n%s", out)
	}
	has(revision, 2)
	if out, _ := f.run(t, "files", "ls", "--workspace", "w", "-o", "json"); strings.Contains(out, "gone.txt") || !strings.Contains(out, `"name":"new.txt"`) {
		t.Errorf("list: %s", out)
	}
	if out, _ := f.run(t, "files", "get", "--workspace", "w", "new.txt"); out != "hi\n" {
		t.Errorf("the file is %q", out)
	}
	f.fails(t, "no such file: \"gone.txt\" is not among the files of the workspace: see `longshore files ls --workspace w`", "files", "get", "--workspace", "w", "gone.txt")
	_, err = c.Workspaces().Part(t.Context(), messages.DefaultTenant, "w", control.FileRequest{Name: "gone.txt", Manifest: before.Manifest})
	if !errors.Is(err, dispatcher.ErrNoFile) || !strings.Contains(err.Error(), "the workspace has other files by now") {
		t.Errorf("a file of before: %v", err)
	}
	if _, err := c.Workspaces().Files(t.Context(), "other", "w"); !errors.Is(err, dispatcher.ErrNoFile) {
		t.Errorf("another tenant: %v", err)
	}
	for _, wrong := range [][]string{
		{"files", "ls", "--workspace", "w", "files"},
		{"files", "ls", "--workspace", ""},
		{"files", "ls", "--workspace", "w", "--step", "1"},
		{"files", "ls", "--workspace", "w", "--last"},
		{"files", "get", "--workspace", "w"},
		{"files", "get", "--workspace", "a.>", "x"},
	} {
		if _, _, err := executeWith(t, f.connect, "", wrong...); !isUsage(err) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
