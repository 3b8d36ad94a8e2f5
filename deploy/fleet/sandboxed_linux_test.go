//go:build amd64 || arm64

package fleet_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
)

// What a program writes arrives over server-sent events while it runs, after a command hook allowed the call; a call that the hook
// refuses is not made.
func TestProgramsOverHTTP(t *testing.T) {
	t.Parallel()
	h := &overHTTP{t: t, dir: t.TempDir(), called: new([]string)}
	h.file("script.yaml", `
scenes:
  - match: beat
    turns:
      - calls: [{name: shell, arguments: {argv: [sh, -c, "while :; do echo a-beat; sleep 0.1; done"]}}]
  - turns:
      - calls: [{name: shell, arguments: {argv: [echo, forbidden]}}]
      - text: "Then ${lastToolResult}"
`)
	h.file("tools.yaml", `
apiVersion: longshore.run/v1
kind: Tools
spec:
  shell: {programs: [sh, echo], limits: {time: 600s}}
  hooks:
    commands:
      judge: {argv: [sh, -c, "grep -q forbidden && { echo no such word >&2; exit 2; }; exit 0"]}
`)
	agents := filepath.Join(h.dir, "agents")
	if err := os.Mkdir(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	h.file("agents/sheller.yaml", `
apiVersion: longshore.run/v1
kind: Agent
metadata: {name: sheller}
spec:
  tools: [shell]
  toolTimeout: 600s
  hooks: [{on: pre_tool, command: judge, timeout: 30s}]
`)
	ready := filepath.Join(h.dir, "ready.json")
	dev := spawn(t, "dev", []string{"LONGSHORE_SCRIPT=" + filepath.Join(h.dir, "script.yaml"), "LONGSHORE_TOOLS=" + filepath.Join(h.dir, "tools.yaml")}, binary, "dev",
		"--data", filepath.Join(h.dir, "data"), "--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0",
		"--agents", agents, "--ready-file", ready)
	dev.line("longshore is ready: ")
	data, err := os.ReadFile(ready)
	var at map[string]string
	if err != nil || json.Unmarshal(data, &at) != nil {
		t.Fatalf("%s, %v", data, err)
	}
	h.http = []string{"LONGSHORE_URL=" + at["api"]}

	h.do("run --agent sheller other", "Then Refused by a hook: no such word")

	run := h.do("submit --agent sheller beat")
	resp, err := http.Get(at["api"] + "/v1/tasks/" + run + "/events?deltas=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var heard messages.Live
	var ended string
	lines := bufio.NewScanner(resp.Body)
	for name := ""; lines.Scan(); {
		if event, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = event
		}
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case ok && name == "delta" && heard.Kind == "":
			var l messages.Live
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if l.Kind == messages.LiveToolOutput {
				heard = l
				h.do("cancel " + run)
			}
		case ok && name == messages.EventRunFinished:
			ended = text
		}
	}
	if heard.Tool != "shell" || heard.CallID == "" || heard.Run != run || !strings.HasPrefix(heard.Text, "a-beat\n") {
		t.Errorf("heard %+v", heard)
	}
	if !strings.Contains(ended, `"cancelled"`) {
		t.Errorf("ended: %s", ended)
	}
}

// A worker whose machine lacks a layer that a granted tool or a command hook requires is not ready, and names both; so does the doctor. An
// operator's cgroup folder that is not a folder of cgroups keeps all programs from running.
func TestWorkersWithoutALayerAreNotReady(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, nil)
	file := filepath.Join(t.TempDir(), "tools.yaml")
	if err := os.WriteFile(file, []byte(`
apiVersion: longshore.run/v1
kind: Tools
spec:
  shell: {programs: [sh]}
  hooks: {commands: {judge: {argv: [cat]}}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	if p := w.worker("whole", "LONGSHORE_TOOLS="+file); !strings.Contains(probe(t, p), `"ready":true`) {
		t.Errorf("readyz with all layers: %s", probe(t, p))
	}
	env := []string{"LONGSHORE_TOOLS=" + file, "LONGSHORE_SANDBOX_CGROUP=" + t.TempDir()}
	p := w.worker("lacking", env...)
	for _, want := range []string{"tool shell: the sandbox is not available: without cgroup", "hook command judge: the sandbox is not available: without cgroup"} {
		if said := probe(t, p); !strings.Contains(said, want) {
			t.Errorf("readyz: %s, want %q", said, want)
		}
	}
	resp, err := http.Get("http://" + p.address() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("readyz: %s", resp.Status)
	}
	if got := call(t, append(w.workerEnv("doctor"), env...), "doctor", "--role", "worker"); got.code == 0 || !strings.Contains(got.stdout, "hook command judge: ") {
		t.Errorf("doctor: %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}
