//go:build amd64 || arm64

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/longshore-run/longshore/sandbox/process/confine"
)

// NewWith is New with the place of longshore-sandbox, and the sum that it must have.
func NewWith(ctx context.Context, cfg Config, path, sum string) (*Native, error) {
	return newNative(ctx, cfg, path, sum)
}

// Knows makes the runner ask no more of Landlock than a version has.
func (n *Native) Knows(abi int) { n.abi = abi }

// FindCgroup and AboveOwn find the folder for groups.
func FindCgroup(configured string) (string, error) { return findCgroup(configured) }

func AboveOwn(own string) (string, error) { return aboveOwn(own) }

// LimitGroup sets the limits of the group in a folder, and OutOfMemory reports what the kernel did in it.
func LimitGroup(dir string, l Limits) error { return (&group{dir: dir}).limit(l) }

func OutOfMemory(dir string) bool { return (&group{dir: dir}).outOfMemory() }

// ParseStat reads what the kernel says of a process, and SinceBoot is the time by its clock.
func ParseStat(text string) (parent, group int, began time.Duration, ok bool) {
	p, ok := parseStat(text)
	return p.parent, p.group, p.began, ok
}

func SinceBoot() time.Duration { return sinceBoot() }

// MemoryOfPrograms adds up the memory of the programs that this process has started. What confines them is not one: until it executes the
// program, it may share the memory of this process.
func MemoryOfPrograms() (total int64) {
	below := map[int][]int{}
	for _, p := range processes() {
		below[p.parent] = append(below[p.parent], p.pid)
	}
	self, _ := os.Readlink("/proc/self/exe")
	for next := below[os.Getpid()]; len(next) > 0; next = next[1:] {
		next = append(next, below[next[0]]...)
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", next[0]))
		if err == nil && exe != self && filepath.Base(exe) != confine.Name {
			total += resident(next[0])
		}
	}
	return total
}

// GroupOfChild starts a child in the group of a folder and returns what the kernel says of its groups.
func (n *Native) GroupOfChild(dir string) (string, error) {
	runtime.LockOSThread() // see start
	defer runtime.UnlockOSThread()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer null.Close()
	folder, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	defer folder.Close()
	s := confine.Setup{Namespaces: n.layers.Has(LayerNamespaces), Landlock: true, ABI: n.abi, Temp: os.TempDir(), TempSize: 1 << 20}
	s.Path, s.Args = "/bin/true", []string{"true"}
	c, err := n.start(launch{setup: &s, files: [3]*os.File{null, null, null}, cgroup: folder})
	if err != nil {
		return "", err
	}
	_, _, err = c.ready() // it waits
	text, readErr := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", c.process.Pid))
	c.kill()
	_, _ = c.reap()
	return string(text), errors.Join(err, readErr, c.close())
}
