//go:build amd64 || arm64

package process_test

import (
	"os"
	"testing"
	"time"

	"github.com/longshore-run/longshore/sandbox/process"
)

// Each process of a program stays within its limit, and all together do not: they are ended. What they share is not held against them.
func TestMemoryOfAllProcesses(t *testing.T) {
	modes(t, func(t *testing.T, a *arena) {
		limits := process.Limits{Memory: 96 << 20, Wall: 2 * time.Minute}
		c, token := a.command("crowd", "own", "32", "6", "1h")
		c.Limits = limits
		if r := a.run(t, c); r.Reason != process.MemoryLimit || r.Signal != "SIGKILL" {
			t.Errorf("%+v %s%s", r, r.Stdout, r.Stderr)
		}
		wantGone(t, token)
		if a.Layers().Has(process.LayerCgroup) {
			return
		}
		c, _ = a.command("crowd", "shared", "32", "6", "3s")
		c.Limits = limits
		if r := a.run(t, c); r.Reason != process.Exited || decode(t, r)["fork"] != "ok" {
			t.Errorf("%+v %s%s", r, r.Stdout, r.Stderr)
		}
	})
}

func TestParseStat(t *testing.T) {
	const rest = " S 12 34 34 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 250 1 1"
	for name, ok := range map[string]bool{"7 (sh)" + rest: true, "7 (a) S 1 1 (b)" + rest: true, "7 (sh) S 12 34": false, "": false, "7 (" + rest: false} {
		parent, group, began, got := process.ParseStat(name)
		if got != ok || ok && (parent != 12 || group != 34 || began != 2500*time.Millisecond) {
			t.Errorf("%q: %d, %d, %v, %t", name, parent, group, began, got)
		}
	}
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if parent, _, began, ok := process.ParseStat(string(text)); !ok || parent != os.Getppid() || began > process.SinceBoot() || process.SinceBoot()-began > time.Hour {
		t.Errorf("%d, %v of %v", parent, began, process.SinceBoot())
	}
}
