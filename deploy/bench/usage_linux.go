package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ownUsage is that of this process.
func ownUsage() (usage, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return usage{}, fmt.Errorf("get resource usage: %w", err)
	}
	// Not the peak of getrusage: that of the parent is inherited.
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return usage{}, fmt.Errorf("get resource usage: %w", err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kib, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	peak, err := strconv.ParseUint(kib, 10, 64)
	if err != nil {
		return usage{}, fmt.Errorf("get resource usage: read VmHWM: %w", err)
	}
	return usage{CPUSeconds: seconds(r.Utime) + seconds(r.Stime), PeakBytes: peak << 10}, nil
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
