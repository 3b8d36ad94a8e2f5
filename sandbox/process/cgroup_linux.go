//go:build amd64 || arm64

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// group is the cgroup of one program.
type group struct {
	dir  string
	file *os.File
}

// findCgroup returns a folder of cgroup v2 below which groups with limits of memory and processes can be made, or why there is
// none. A group that has processes itself can have none below, so it is the parent of the worker's, if that is delegated.
func findCgroup(configured string) (string, error) {
	dir := configured
	if dir == "" {
		own, err := os.ReadFile("/proc/self/cgroup")
		if err != nil {
			return "", err
		}
		if dir, err = aboveOwn(string(own)); err != nil {
			return "", err
		}
	}
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return "", err
	}
	for _, need := range []string{"memory", "pids"} {
		if !strings.Contains(" "+string(controllers)+" ", need) {
			return "", fmt.Errorf("%s does not delegate the controller %s", dir, need)
		}
	}
	return dir, nil
}

// aboveOwn returns the folder above the group of a process, of whose groups it is told what is in /proc/self/cgroup.
func aboveOwn(own string) (string, error) {
	path, ok := "", false
	for line := range strings.Lines(own) {
		if p, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found {
			path, ok = p, true
		}
	}
	if !ok || path == "/" || strings.HasPrefix(path, "/..") { // the last is outside of this process's cgroup namespace
		return "", errors.New("this process has no cgroup v2 below another that it may use")
	}
	return filepath.Dir(filepath.Join("/sys/fs/cgroup", path)), nil
}

// newGroup makes a group with limits; nil if there are no groups.
func (n *Native) newGroup(l Limits) (*group, error) {
	if n.cgroup == "" {
		return nil, nil
	}
	dir, err := os.MkdirTemp(n.cgroup, "longshore-")
	if err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	g := &group{dir: dir}
	if err := g.limit(l); err != nil {
		return nil, errors.Join(err, g.close())
	}
	if g.file, err = os.Open(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("open cgroup: %w", bare(err)), g.close())
	}
	return g, nil
}

// limit sets the limits of a group that was made.
func (g *group) limit(l Limits) error {
	for _, set := range [][2]string{
		{"memory.max", strconv.FormatInt(l.Memory, 10)},
		{"memory.swap.max", "0"},
		{"memory.oom.group", "1"},
		{"pids.max", strconv.Itoa(l.Processes + supervisorThreads)},
	} {
		err := put(filepath.Join(g.dir, set[0]), set[1])
		if err != nil && (set[0] != "memory.swap.max" || !errors.Is(err, os.ErrNotExist)) { // a kernel without swap
			return fmt.Errorf("limit cgroup: %s: %w", set[0], bare(err))
		}
	}
	return nil
}

// put writes a file that the kernel made. To make one is refused there, whatever is missing.
func put(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (g *group) folder() *os.File {
	if g == nil {
		return nil
	}
	return g.file
}

// outOfMemory reports whether the kernel killed a process of the group for its memory.
func (g *group) outOfMemory() bool {
	if g == nil {
		return false
	}
	events, err := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(events)) {
		if name, count, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" {
			return count != "0"
		}
	}
	return false
}

// close removes the group. All of its processes have ended.
func (g *group) close() error {
	if g == nil {
		return nil
	}
	var err error
	if g.file != nil {
		err = g.file.Close()
	}
	return errors.Join(err, os.Remove(g.dir))
}
