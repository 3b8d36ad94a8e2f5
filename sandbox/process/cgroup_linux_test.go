//go:build amd64 || arm64

package process_test

import (
	"crypto/rand"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/sandbox/process"
)

// No machine of the tests has delegated controllers, so what is written and read is tested on folders that stand for groups, and where a
// child starts on the hierarchy of the kernel. That the limits hold is not shown here: it is the kernel's part.

// groupFolder is a folder with files, as the kernel would have made it.
func groupFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFolderForGroups(t *testing.T) {
	for name, test := range map[string]struct{ own, want, err string }{
		"below a slice":   {own: "0::/longshore.slice/worker.service\n", want: "/sys/fs/cgroup/longshore.slice"},
		"below the root":  {own: "0::/worker\n", want: "/sys/fs/cgroup"},
		"both versions":   {own: "4:memory:/a\n0::/pods/worker\n", want: "/sys/fs/cgroup/pods"},
		"the root":        {own: "0::/\n", err: "no cgroup v2 below another"},
		"version 1 alone": {own: "4:memory:/a\n", err: "no cgroup v2 below another"},
		"dots":            {own: "0::/../../etc/x\n", err: "no cgroup v2 below another"}, // outside of the cgroup namespace
	} {
		t.Run(name, func(t *testing.T) {
			got, err := process.AboveOwn(test.own)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	for controllers, want := range map[string]string{
		"cpuset cpu io memory pids\n": "", "memory pids\n": "", "cpu pids\n": "does not delegate the controller memory", "memory\n": "does not delegate the controller pids", "\n": "controller memory",
	} {
		dir := groupFolder(t, map[string]string{"cgroup.subtree_control": controllers})
		got, err := process.FindCgroup(dir)
		if want == "" && (err != nil || got != dir) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v", controllers, got, err)
		}
	}
	if _, err := process.FindCgroup(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not a cgroup: %v", err)
	}
}

func TestLimitsOfGroups(t *testing.T) {
	all := map[string]string{"memory.max": "", "memory.swap.max": "", "memory.oom.group": "", "pids.max": ""}
	limits := process.Limits{Memory: 64 << 20, Processes: 8}
	want := map[string]string{"memory.max": "67108864", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "20"} // 8, and 12 threads of the supervisor
	for _, missing := range append([]string{""}, slices.Sorted(maps.Keys(all))...) {
		files := maps.Clone(all)
		delete(files, missing)
		dir := groupFolder(t, files)
		err := process.LimitGroup(dir, limits)
		if missing != "" && missing != "memory.swap.max" { // which kernels without swap have not
			if err == nil || !strings.Contains(err.Error(), "limit cgroup: "+missing) {
				t.Errorf("without %s: %v", missing, err)
			}
			continue
		}
		got := map[string]string{}
		for name := range files {
			text, readErr := os.ReadFile(filepath.Join(dir, name))
			err = errors.Join(err, readErr)
			got[name] = string(text)
		}
		if _, statErr := os.Stat(filepath.Join(dir, "memory.swap.max")); missing != "" && statErr == nil {
			t.Error("a file was made, which the kernel refuses")
		}
		expected := maps.Clone(want)
		delete(expected, missing)
		if diff := cmp.Diff(expected, got); err != nil || diff != "" {
			t.Errorf("without %q: %v\n%s", missing, err, diff)
		}
	}
}

func TestOutOfMemoryInGroup(t *testing.T) {
	for events, want := range map[string]bool{
		"low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 1\n": true, "low 0\nmax 12\noom 0\noom_kill 0\n": false, "": false, "oom_kill\n": true,
	} {
		if got := process.OutOfMemory(groupFolder(t, map[string]string{"memory.events": events})); got != want {
			t.Errorf("%q: %t", events, got)
		}
	}
	if process.OutOfMemory(t.TempDir()) {
		t.Error("a group that is gone was out of memory")
	}
}

// A child starts in its group, and not in the worker's.
func TestChildStartsInItsGroup(t *testing.T) {
	var dir string
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
			continue // not cgroup v2
		}
		made := filepath.Join(root, "longshore-test-"+rand.Text())
		if err := os.Mkdir(made, 0o755); err == nil {
			dir = made
			break
		}
	}
	if dir == "" {
		t.Skip("left out: no cgroup v2 in which this user may make groups")
	}
	defer func() {
		if err := os.Remove(dir); err != nil {
			t.Error("a process stayed: ", err)
		}
	}()
	modes(t, func(t *testing.T, a *arena) {
		got, err := a.GroupOfChild(dir)
		if err != nil || !strings.Contains(got, "0::/"+filepath.Base(dir)+"\n") {
			t.Errorf("%q, %v", got, err)
		}
	})
}
