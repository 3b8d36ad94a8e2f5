//go:build amd64 || arm64

package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// How often the memory of a program's processes is added up where no cgroup limits it; seldom where that takes long.
	memoryEvery = 100 * time.Millisecond
	// How much longer than a measurement the wait for the next one is, at least.
	memoryShare = 40
	// How old a process must be to be counted: until a new one executes its program it may share all memory of its parent.
	grown = 300 * time.Millisecond
)

// oversized reports whether the processes of the program together have more memory than they may, and an eighth: stacks, and what programs
// change of their code, are beyond the limit of each process too. Memory that several share counts once.
func (r *running) oversized() bool {
	most := r.limits.Memory + r.limits.Memory/8
	family := r.child.family()
	total := int64(0)
	for _, pid := range family {
		total += resident(pid)
	}
	if total <= most {
		return false
	}
	total = 0 // of each its part of what it shares, which takes longer to find out
	for _, pid := range family {
		if part, ok := added(pid, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:", "SwapPss:"); ok {
			total += part
		} else {
			total += resident(pid)
		}
	}
	return total > most
}

// resident returns the bytes of a process that are no file's, those that it shares with others included; 0: it has ended.
func resident(pid int) int64 {
	n, _ := added(pid, "status", "RssAnon:", "RssShmem:", "VmSwap:")
	return n
}

// added adds up lines of a file in /proc, which are in KiB.
func added(pid int, file string, names ...string) (total int64, ok bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(text) {
		for _, name := range names {
			if rest, found := bytes.CutPrefix(line, []byte(name)); found {
				kib, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
				total += kib << 10
				ok = true
			}
		}
	}
	return total, ok
}

// family returns the processes of the program that are grown. In namespaces they descend from the child, which is not one of them; else
// no process can leave its group.
func (c *child) family() (family []int) {
	now, all := sinceBoot(), processes()
	below := map[int][]member{}
	for _, p := range all {
		below[p.parent] = append(below[p.parent], p)
	}
	take := func(p member) {
		if now-p.began >= grown {
			family = append(family, p.pid)
		}
	}
	if !c.namespaces {
		for _, p := range all {
			if p.group == c.process.Pid {
				take(p)
			}
		}
		return family
	}
	for next := below[c.process.Pid]; len(next) > 0; next = next[1:] {
		take(next[0])
		next = append(next, below[next[0].pid]...)
	}
	return family
}

// member is what a process belongs to, and when after the start of the machine it began.
type member struct {
	pid, parent, group int
	began              time.Duration
}

// processes are those of this machine, as far as they are seen.
func processes() (all []member) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended
		}
		if p, ok := parseStat(string(text)); ok {
			p.pid = pid
			all = append(all, p)
		}
	}
	return all
}

// parseStat reads /proc/PID/stat: the name of the program, which may hold anything, is in brackets, and what is needed comes after it.
func parseStat(text string) (p member, ok bool) {
	const parent, group, began = 1, 2, 19 // after the brackets; see proc(5)
	name := strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[name+1:])
	if name < 0 || len(fields) <= began {
		return p, false
	}
	ticks, err := strconv.ParseInt(fields[began], 10, 64)
	if err != nil {
		return p, false
	}
	p.parent, _ = strconv.Atoi(fields[parent])
	p.group, _ = strconv.Atoi(fields[group])
	p.began = time.Duration(ticks) * (time.Second / 100) // the kernel's, for programs
	return p, true
}

// sinceBoot is the clock of member.began.
func sinceBoot() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // fails for no clock that exists
	return time.Duration(t.Nano())
}
