package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
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
