package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// On a terminal a person is asked before anything is written: yes is the standard answer after a run that completed, no after another.
// Ctrl-C leaves the folder as it was.
func TestRunOnAFolderAsks(t *testing.T) {
	h, dir := openFolder(t)
	for name, tc := range map[string]struct {
		text, question, keys string
		code                 int
		want                 string
	}{
		"an empty line after success": {"fix", "Write 2 changes to ", "\r", 0, fixed},
		"no":                          {"fix", "[Y/n]", "no\r", 0, untouched},
		"an empty line after failure": {"break", "[y/N]", "\r", 1, untouched},
		"Ctrl-C":                      {"fix", "[Y/n]", "\x03", 130, untouched},
	} {
		t.Run(name, func(t *testing.T) {
			fill(t, dir)
			f := foreground(t, h.nats, "run", tc.text, "--workspace", dir)
			f.waitFor(tc.question)
			f.Press(tc.keys)
			if code := f.ends(); code != tc.code {
				t.Errorf("it ends with %d, want %d", code, tc.code)
			}
			if now := contents(t, dir); now != tc.want {
				t.Errorf("the folder has %s, want %s", now, tc.want)
			}
		})
	}
}

// A change that is not made because the file changed here meanwhile is a failure of the command, also if it was the only one.
func TestRunOnAFolderThatChanges(t *testing.T) {
	h, dir := openFolder(t)
	asker := h.file("asker.yaml", "apiVersion: longshore.run/v1\nkind: Agent\nmetadata: {name: asker}\nspec: {tools: [ask_human, write_file]}\n")
	if got := call(t, h.http, "agents", "apply", asker); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	for _, tc := range []struct {
		flags []string
		code  int
		told  string
		want  string
	}{
		{nil, 1, "1 change not written, because of what changed here meanwhile", strings.Replace(untouched, "a.txt=a", "a.txt=mine", 1)},
		{[]string{"--overwrite"}, 0, "Wrote 1 change to ", strings.Replace(untouched, "a.txt=a", "a.txt=asked", 1)},
	} {
		fill(t, dir)
		f := foreground(t, h.nats, append([]string{"run", "ask", "--agent", "asker", "--workspace", dir, "--yes"}, tc.flags...)...)
		f.waitFor("Type your answer")
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		f.Press("four\r")
		f.waitFor(tc.told)
		if code := f.ends(); code != tc.code {
			t.Errorf("it ends with %d, want %d", code, tc.code)
		}
		if now := contents(t, dir); now != tc.want {
			t.Errorf("the folder has %s, want %s", now, tc.want)
		}
	}
}
