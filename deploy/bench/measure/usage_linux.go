package measure

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// OwnUsage is that of this process.
func OwnUsage() (Usage, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return Usage{}, fmt.Errorf("get resource usage: %w", err)
	}
	// Not the peak of getrusage: that of the parent is inherited.
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return Usage{}, fmt.Errorf("get resource usage: %w", err)
	}
	peak, err := memoryOf(string(status), "VmHWM:")
	now, errNow := memoryOf(string(status), "VmRSS:")
	return Usage{CPUSeconds: seconds(r.Utime) + seconds(r.Stime), PeakBytes: peak, Resident: now, Wakeups: r.Nvcsw}, errors.Join(err, errNow)
}

// memoryOf is a field of the status of a process, in bytes.
func memoryOf(status, field string) (uint64, error) {
	_, after, _ := strings.Cut(status, field)
	kib, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, err := strconv.ParseUint(kib, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("get resource usage: read %s %w", field, err)
	}
	return n << 10, nil
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
