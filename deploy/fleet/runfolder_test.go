//go:build unix

package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const folderScript = `
scenes:
  - match: fix
    turns:
      - calls: [{name: read_file, arguments: {filePath: a.txt}}]
      - calls: [{name: write_file, arguments: {filePath: a.txt, content: "a, fixed"}}]
      - calls: [{name: write_file, arguments: {filePath: sub/new.txt, content: "new"}}]
      - text: "I read ${lastToolResult}"
  - match: ask
    turns:
      - calls: [{name: ask_human, arguments: {question: How many?}}]
      - calls: [{name: write_file, arguments: {filePath: a.txt, content: "asked"}}]
      - text: done
  - match: break
    turns:
      - calls: [{name: write_file, arguments: {filePath: a.txt, content: "broken"}}]
      - {error: {class: auth, message: no such key, status: 401}}
  - turns: [{text: Nothing to do}]
`

// openFolder is a fleet with a data folder of its own, and a folder elsewhere.
func openFolder(t *testing.T) (h *overHTTP, dir string) {
	t.Helper()
	h = &overHTTP{t: t, dir: t.TempDir(), called: new([]string)}
	h.file("script.yaml", folderScript)
	h.start("127.0.0.1:0")
	h.http = append(h.http, "LONGSHORE_API_KEY="+h.key("*", "admin"))
	return h, t.TempDir()
}

// fill makes the folder as it is before a run.
func fill(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, "sub")); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"a.txt": "a", "kept.txt": "kept", ".env": "KEY=1", ".longshoreignore": "*.tmp\n", "x.tmp": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// contents are the files of a folder with what they hold.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all = append(all, name+"="+strings.TrimSpace(string(data)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

const (
	untouched = ".env=KEY=1 .longshoreignore=*.tmp a.txt=a kept.txt=kept x.tmp=x"
	fixed     = ".env=KEY=1 .longshoreignore=*.tmp a.txt=a, fixed kept.txt=kept sub/new.txt=new x.tmp=x"
)

// A folder of this machine goes to a fleet elsewhere, and what the run changed comes back once that is wanted.
func TestRunOnAFolderWithAFleetElsewhere(t *testing.T) {
	h, dir := openFolder(t)
	for name, env := range map[string][]string{"nats": h.nats, "http": h.http} {
		for _, tc := range []struct {
			name, text string
			flags      []string
			code       int
			told       []string
			want       string
		}{
			{"nothing is answered", "fix", nil, 0, []string{
				"Not uploaded: .env: looks like a secret", "Not uploaded: 1 name that the rules", "Uploading 3 files, ", "added sub/new.txt", "changed a.txt",
				"Nothing was written, because there is no terminal to ask on", "longshore files get ",
			}, untouched},
			{"yes", "fix", []string{"--yes"}, 0, []string{"Wrote 2 changes"}, fixed},
			{"nothing to do", "idle", []string{"--yes"}, 0, []string{"The run has changed no files."}, untouched},
			{"a run that failed", "break", []string{"--yes"}, 1, []string{"changed a.txt", "Nothing was written"}, untouched},
		} {
			t.Run(name+" "+tc.name, func(t *testing.T) {
				fill(t, dir)
				got := call(t, env, append([]string{"run", tc.text, "--workspace", dir}, tc.flags...)...)
				if got.code != tc.code || !containsAll(got.stderr, tc.told) {
					t.Errorf("%+v, want %d and %q", got, tc.code, tc.told)
				}
				if now := contents(t, dir); now != tc.want {
					t.Errorf("the folder has %s, want %s", now, tc.want)
				}
			})
		}
	}
	fill(t, dir)
	got := call(t, h.nats, "submit", "fix", "--workspace", dir, "--id", "submitted")
	if got.code != 0 || !strings.Contains(got.stderr, "Uploading 3 files, ") {
		t.Fatalf("%+v", got)
	}
	if got := call(t, h.http, "watch", "submitted"); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if got := call(t, h.http, "files", "get", "submitted", "a.txt"); got.stdout != "a, fixed" {
		t.Errorf("%+v", got)
	}
	if now := contents(t, dir); now != untouched {
		t.Errorf("submit changed the folder: %s", now)
	}
}
