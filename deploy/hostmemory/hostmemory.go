// Package hostmemory finds out how much memory a process may take: what its cgroup may have, or else what the machine has.
package hostmemory

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

const (
	cgroupShare = 3.0 / 4 // of what a cgroup may have: the rest is for what Go does not count, and for programs of tools
	hostShare   = 1.0 / 2 // of a machine's memory, which other processes use too
	unknown     = 2 << 30 // for a system that does not tell
)

// Limit is how many bytes a process should take that was not told: a share of what its cgroup, or any above it, may have, or else of the
// machine's memory.
func Limit() int64 { return limit(os.DirFS("/")) }

func limit(root fs.FS) int64 {
	host := total(root)
	if group := cgroup(root); group > 0 && (host == 0 || group < host) {
		return int64(cgroupShare * float64(group))
	}
	if host == 0 {
		return unknown
	}
	return int64(hostShare * float64(host))
}

// total is the memory of the machine; 0: unknown.
func total(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "MemTotal:")
	kib, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, err := strconv.ParseInt(kib, 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// cgroup is the smallest limit of the groups that this process is in, of version 2 and 1 of cgroups; 0: there is none.
func cgroup(root fs.FS) (least int64) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		top, file := "sys/fs/cgroup", "memory.max"
		switch {
		case parts[0] == "0" && parts[1] == "":
		case strings.Contains(","+parts[1]+",", ",memory,"):
			top, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for at := path.Clean(parts[2]); ; at = path.Dir(at) { // a container that sees groups of the host finds its own at the top
			if n := read(root, path.Join(top, at, file)); n > 0 && (least == 0 || n < least) {
				least = n
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}

// read is the limit in a file; 0: none, which is "max" in version 2.
func read(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
