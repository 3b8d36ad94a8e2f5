//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// counter notes when runs end.
type counter struct {
	w   workload
	all chan struct{} // closed when all have ended

	mu    sync.Mutex
	ended int
	last  time.Time // the end of the last run
	err   error     // the first
}

func newCounter(w workload) *counter { return &counter{w: w, all: make(chan struct{})} }

// end notes that a run has ended.
func (c *counter) end() {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended++
	if c.ended == c.w.all() {
		c.last = now
		close(c.all)
	}
}

// fail keeps the first error of a job.
func (c *counter) fail(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	return err
}

// measure calls begin, which starts the work, and waits for all runs. The time is that of all of them: each job goes to the end of the queue, so no
// run ends long before the others. The processor time of server counts too.
func (c *counter) measure(ctx context.Context, server int, begin func() error) (r result, err error) {
	own, theirs, err := spent(server)
	if err != nil {
		return r, err
	}
	begun := time.Now()
	if err := begin(); err != nil {
		return r, err
	}
	select {
	case <-c.all:
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		return r, errors.Join(fmt.Errorf("%d of %d runs have ended: %w", c.ended, c.w.all(), context.Cause(ctx)), c.err)
	}
	ownAfter, theirsAfter, err := spent(server)
	if err != nil {
		return r, err
	}
	per := func(d time.Duration) float64 {
		return rounded(float64(d.Microseconds())/float64(c.w.all()), 1)
	}
	span := c.last.Sub(begun)
	r = result{
		Runs: c.w.all(), Seconds: rounded(span.Seconds(), 3), RunsPerSecond: rounded(float64(c.w.all())/span.Seconds(), 0),
		WorkCPU: per(ownAfter - own), ServersCPU: per(theirsAfter - theirs),
	}
	r.CPU = rounded(r.WorkCPU+r.ServersCPU, 1)
	return r, nil
}

// spent is the processor time of this process, and of a server with the processes that it started.
func spent(server int) (own, theirs time.Duration, err error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, fmt.Errorf("get resource usage: %w", err)
	}
	theirs, err = cpuOf(server)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), theirs, err
}
