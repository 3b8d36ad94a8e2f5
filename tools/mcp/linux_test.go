package mcp_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Attack 56: a server dies with a worker that is killed, though it does not look at its input.
func TestAttack56WorkerKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.CommandContext(t.Context(), self)
	worker.Env = []string{modeVariable + "=parent", "PATH=" + os.Getenv("PATH")}
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "<nil>\n" {
		t.Fatalf("%q %v", line, err)
	}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", worker.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var children []int
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for pid := range strings.FieldsSeq(string(text)) {
			n, _ := strconv.Atoi(pid)
			children = append(children, n)
		}
	}
	if len(children) != 1 {
		t.Fatalf("children %v", children)
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	until(t, "the server dies", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", children[0]))
		return err != nil || strings.Contains(string(status), ") Z ") || syscall.Kill(children[0], 0) != nil
	})
}

// A process ends with its family, and so do its children.
func TestChildrenEnd(t *testing.T) {
	f, set := one(t, stdio(t, "sdk"))
	pid, err := strconv.Atoi(text(call(t, set, "s_spawn", map[string]any{"text": ""})))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the child ends", func() bool {
		if syscall.Kill(pid, 0) != nil {
			return true
		}
		status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")) // a zombie that init did not reap yet
		return err != nil || strings.Contains(string(status), ") Z ")
	})
}
