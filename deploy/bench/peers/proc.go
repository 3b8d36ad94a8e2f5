//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc, which is the same on all machines that Go runs on.
const tick = 10 * time.Millisecond

// Fields of /proc/PID/stat after the name, from 0.
const (
	statParent   = 1
	statUser     = 11
	statSystem   = 12
	statWaited   = 13 // user time of the children that have ended
	statWaitedSy = 14
)

// cpuOf is the processor time of a process and its children, those that have ended too.
func cpuOf(pid int) (time.Duration, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	var ticks int64
	found := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		s := string(text)
		fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
		own := filepath.Base(filepath.Dir(file)) == strconv.Itoa(pid)
		if !own && fields[statParent] != strconv.Itoa(pid) {
			continue
		}
		counted := []int{statUser, statSystem}
		if own {
			found = true
			counted = append(counted, statWaited, statWaitedSy)
		}
		for _, i := range counted {
			n, err := strconv.ParseInt(fields[i], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read processor time: %s: %w", file, err)
			}
			ticks += n
		}
	}
	if !found {
		return 0, fmt.Errorf("read processor time: process %d has ended", pid)
	}
	return time.Duration(ticks) * tick, nil
}
