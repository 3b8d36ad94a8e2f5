//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

// submitters is how many jobs are enqueued at once before the measurement.
const submitters = 64

// runAsynq works all runs with Asynq on a fresh redis-server that keeps everything in memory.
func runAsynq(ctx context.Context, dir string, w workload) (r result, err error) {
	addr, server, err := startRedis(ctx, dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, stopServer(server)) }()
	opt := asynq.RedisClientOpt{Addr: addr}
	client := asynq.NewClient(opt)
	defer func() { err = errors.Join(err, client.Close()) }()
	enqueue := func(ctx context.Context, u unit) error {
		body, err := json.Marshal(u)
		if err != nil {
			return fmt.Errorf("encode a job: %w", err)
		}
		if _, err := client.EnqueueContext(ctx, asynq.NewTask(u.Kind(), body)); err != nil {
			return fmt.Errorf("enqueue a job: %w", err)
		}
		return nil
	}
	if err := fill(w, func(n int) error { return enqueue(ctx, unit{Run: n, Unit: 1, Text: text()}) }); err != nil {
		return r, err
	}
	c := newCounter(w)
	work := asynq.NewServer(opt, asynq.Config{Concurrency: w.Slots, LogLevel: asynq.ErrorLevel})
	mux := asynq.NewServeMux()
	mux.HandleFunc(unit{}.Kind(), func(ctx context.Context, t *asynq.Task) error {
		var u unit
		if err := json.Unmarshal(t.Payload(), &u); err != nil {
			return c.fail(err)
		}
		if u.Unit == w.Units {
			c.end()
			return nil
		}
		u.Unit++
		if err := enqueue(ctx, u); err != nil {
			return c.fail(err)
		}
		return nil
	})
	defer work.Shutdown()
	return c.measure(ctx, server.Process.Pid, func() error { return work.Start(mux) })
}

// fill enqueues the first job of each run, many at once.
func fill(w workload, enqueue func(n int) error) error {
	errs := make([]error, submitters)
	var group sync.WaitGroup
	for i := range submitters {
		group.Go(func() {
			for n := i; n < w.all() && errs[i] == nil; n += submitters {
				errs[i] = enqueue(n)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func startRedis(ctx context.Context, dir string) (addr string, _ *exec.Cmd, err error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", nil, fmt.Errorf("redis-server %w", errNoServer)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("find a free port: %w", err)
	}
	addr = l.Addr().String()
	if err := l.Close(); err != nil {
		return "", nil, fmt.Errorf("find a free port: %w", err)
	}
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.CommandContext(ctx, path, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start redis-server: %w", err)
	}
	err = until(ctx, func() error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("start redis-server: %w", err), stopServer(cmd))
	}
	return addr, cmd, nil
}

// startTimeout is how long a server may take to be ready.
const startTimeout = 30 * time.Second

// until tries something until it succeeds.
func until(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

// stopServer ends a server, which has nothing to save, by its own handle, and waits for it.
func stopServer(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", cmd.Path, err)
	}
	kill := time.AfterFunc(startTimeout, func() { _ = cmd.Process.Kill() }) // fails only when it has ended
	defer kill.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		return nil
	}
	return fmt.Errorf("stop %s: %w", cmd.Path, err)
}
