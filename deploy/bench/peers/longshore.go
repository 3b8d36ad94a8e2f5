//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// build builds deploy/bench, which is in the folder above.
func build(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "bench")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", file, "github.com/longshore-run/longshore/deploy/bench")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build deploy/bench (run this in deploy/bench/peers, or use -bench): %w: %s", err, out)
	}
	return file, nil
}

// longshore measures one round of Longshore's throughput and of its floor.
func longshore(ctx context.Context, bench string, w workload) ([]result, error) {
	args := []string{"-only", "throughput", "-rounds", "1", "-runs", strconv.Itoa(w.Runs), "-warmup", strconv.Itoa(w.Warmup)}
	cmd := exec.CommandContext(ctx, bench, args...)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 20*time.Second
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", bench, err)
	}
	var results []result
	for lines := json.NewDecoder(bytes.NewReader(out)); lines.More(); {
		var l struct {
			result
			Name     string  `json:"name"`
			RedisCPU float64 `json:"redisCpuMicrosPerRun"`
		}
		if err := lines.Decode(&l); err != nil {
			return nil, fmt.Errorf("read what deploy/bench prints: %w", err)
		}
		if l.Name != "throughput" && l.Name != "floor" {
			continue
		}
		l.ServersCPU += l.RedisCPU
		l.ServersCPU = rounded(l.ServersCPU, 1)
		l.CPU = rounded(l.WorkCPU+l.ServersCPU, 1)
		if l.Name == "floor" {
			l.Peer = "floor"
		}
		results = append(results, l.result)
	}
	if len(results) != 2 {
		return nil, fmt.Errorf("deploy/bench printed %d measurements of a throughput and its floor: %s", len(results), out)
	}
	return results, nil
}
