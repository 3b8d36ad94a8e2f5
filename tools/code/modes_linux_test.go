package code_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "code.test")
	syscall.ForkLock.RLock() // a child forked while it is written would hold it open for writing, and it could not be started
	err = errors.Join(os.Chmod(dir, 0o777), os.WriteFile(file, program, 0o755))
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
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
