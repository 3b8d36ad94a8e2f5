//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestSummaryIsTheMedianOfTheRounds(t *testing.T) {
	var out bytes.Buffer
	done := map[string][]result{
		"longshore": {{RunsPerSecond: 100, CPU: 10}, {RunsPerSecond: 90, CPU: 10}, {RunsPerSecond: 80, CPU: 20}},
		"asynq":     {{RunsPerSecond: 100, CPU: 5}, {RunsPerSecond: 100, CPU: 8}, {RunsPerSecond: 100, CPU: 20}},
	}
	if err := summary(done, []string{"longshore", "asynq"}, json.NewEncoder(&out)); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(out.String(), "\n")
	const want = `{"name":"ratio","peer":"asynq","longshoreOfPeer":{"median":0.9,"least":0.8,"most":1},` +
		`"longshoreOfPeerByCpu":{"median":0.8,"least":0.5,"most":1},"target":0.8,"met":true}`
	if first != want {
		t.Errorf("it prints %s, not %s", first, want)
	}
}

func TestCPUOfCountsChildren(t *testing.T) {
	cmd := exec.Command("sh", "-c", `n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done; echo done; read wait`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	before, err := cpuOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	if _, err := out.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	child, err := cpuOf(cmd.Process.Pid)
	if err != nil || child == 0 {
		t.Fatalf("the child used %s, %v", child, err)
	}
	if both, err := cpuOf(os.Getpid()); err != nil || both < before+child {
		t.Errorf("this process and its child used %s, %v: before it was %s, and the child used %s", both, err, before, child)
	}
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-rounds 0": "-rounds, -runs and -units must be at least 1",
		"asynq":     `unexpected argument "asynq"`,
	} {
		if err := run(context.Background(), strings.Fields(args), &bytes.Buffer{}, &bytes.Buffer{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", args, err)
		}
	}
}
