package shell_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/longshore-run/longshore/sandbox/process/processtest"
)

const nobody = 65534

// modes are those in which programs are confined for this user: with namespaces, and without. Root has no other one.
func modes() map[string]bool {
	out := map[string]bool{"namespaces": false}
	if os.Geteuid() != 0 {
		out["landlock"] = true
	}
	return out
}

// As root, the tests of both modes run again as a user without any privilege.
func TestAsAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // they run as such a user anyway
	}
	const tests = "^(TestEndings|TestAttack71Environment|TestAttack72Arguments|TestAttack73Unavailable|TestBackgroundProcessesEnd|TestFolders|TestAttack79Network)$"
	dir := t.TempDir()
	readable(t, dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	file := processtest.Copy(t, dir, "shell.test")
	cmd := exec.CommandContext(t.Context(), file, "-test.run="+tests, "-test.v")
	cmd.Env = []string{"TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if n := strings.Count(string(out), "\n--- PASS: "); err != nil || n != strings.Count(tests, "|")+1 || !strings.Contains(string(out), "--- PASS: TestEndings/landlock/") {
		t.Errorf("%d tests pass: %v\n%s", n, err, out)
	}
}
