package repository_test

import (
	"fmt"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
)

// Git's own server gives away a commit that no branch leads to directly, with deltas, and the files are those of a checkout.
func TestFetchFromGit(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatalf("git is not installed, which other tests need too: %v", err)
	}
	root := t.TempDir()
	dir := filepath.Join(root, "project.git")
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "core.autocrlf=false"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	var lines strings.Builder
	for i := range 2000 {
		_, _ = fmt.Fprintf(&lines, "line %d of a text that is alike in many files\n", i*i)
	}
	want := map[string]string{}
	for i := range 60 {
		want[fmt.Sprintf("src/%02d/file", i)] = fmt.Sprintf("first %d\n%s last %d\n", i, lines.String(), i)
	}
	want["empty"] = ""
	for name, content := range want {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("add", ".")
	git("commit", "-qm", "one")
	commit := git("rev-parse", "HEAD")
	git("commit", "-q", "--allow-empty", "-m", "two")
	git("repack", "-adfq", "--depth=50", "--window=50")
	packs, err := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.idx"))
	if err != nil || len(packs) != 1 {
		t.Fatalf("%d packs: %v", len(packs), err)
	}
	if got := git("verify-pack", "-s", packs[0]); !strings.Contains(got, "chain length") {
		t.Fatalf("the pack has no deltas:\n%s", got)
	}
	backend := &cgi.Handler{
		Path: path, Args: []string{"http-backend"},
		Env:        []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"},
		InheritEnv: []string{"PATH"},
	}
	s := httptest.NewServer(backend)
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	limits := limits
	limits.Total = 32 << 20
	got, err := fetchWithin(t, client(t, host), messages.Repository{URL: s.URL + "/project.git", Commit: commit}, limits)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.files); diff != "" {
		t.Errorf("%d files, want %d", len(got.files), len(want))
	}
	refused(t, client(t, host), messages.Repository{URL: s.URL + "/project.git", Commit: strings.Repeat("b", 40)}, "commit", "the server does not give away a commit bbbb")
	refused(t, client(t, host), messages.Repository{URL: s.URL + "/none.git", Commit: commit}, "url", "the server answers 404")
}
