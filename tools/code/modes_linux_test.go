package code_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/longshore-run/longshore/sandbox/process/processtest"
)

// The tests run in the mode that the machine has for their user, and again in landlock mode, which root has not.
func TestInLandlockMode(t *testing.T) {
	t.Parallel()
	if os.Getenv(landlockVariable) != "" {
		return // it is them
	}
	tests := []string{"TestPrograms", "TestAttack131", "TestAttack132Scripts", "TestPackages"}
	dir := t.TempDir()
	readable(t, dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	file := processtest.Copy(t, dir, "code.test")
	cmd := exec.CommandContext(t.Context(), file, "-test.run=^("+strings.Join(tests, "|")+")$", "-test.v")
	cmd.Env = []string{"TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), landlockVariable + "=1"}
	cmd.Dir = dir
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if n := strings.Count(string(out), "\n--- PASS: "); err != nil || n != len(tests) {
		t.Errorf("%d of %d tests pass: %v\n%s", n, len(tests), err, out)
	}
}
