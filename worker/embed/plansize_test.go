package embed_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools/files"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// widePlan is one of 64 KB whose 99 calls each repeat the output of the first sixteen times.
func widePlan(t *testing.T) string {
	t.Helper()
	type object = map[string]any
	steps := []object{{"id": "read", "description": "Read.", "tool": "read_file", "args": object{"filePath": "big.txt"}}}
	for i := range 99 {
		steps = append(steps, object{
			"id": fmt.Sprintf("s%d", i), "description": "Write.", "tool": "write_file", "dependsOn": []string{"read"},
			"args": object{"filePath": fmt.Sprintf("out/%d.txt", i), "content": strings.Repeat("${steps.read.output} some more text ", 15)},
		})
	}
	data, err := json.Marshal(object{"steps": steps})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// heap is how much live memory and garbage there is.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Six plans at once, each of which would have 95 MB of arguments, take little memory of their worker, and end.
func TestPlansThatRepeatALargeOutput(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big.txt"), []byte(strings.Repeat("0123456789abcdef", 1<<16)), 0o600); err != nil {
		t.Fatal(err)
	}
	fileTools, err := files.Tools()
	if err != nil {
		t.Fatal(err)
	}
	reply, err := json.Marshal(widePlan(t))
	if err != nil {
		t.Fatal(err)
	}
	play, err := scripted.Parse(fmt.Appendf(nil, "scenes: [{turns: [{text: %s}, {text: done}]}]", reply))
	if err != nil {
		t.Fatal(err)
	}
	service, err := embed.New(embed.Config{
		Model: scripted.New(play), Tools: fileTools,
		Agent:     messages.Definition{Name: "planner", Planner: messages.PlannerPlan, Observe: "never", Tools: []string{"read_file", "write_file"}},
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return sandbox.Open(dir, sandbox.Limits{}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	before, most, stop := heap(), make(chan uint64, 1), make(chan struct{})
	go func() {
		highest, tick := uint64(0), time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				most <- highest
				return
			case <-tick.C:
				highest = max(highest, heap())
			}
		}
	}()
	ends := make(chan string, 6)
	for range cap(ends) {
		session, err := service.Session(messages.Task{Input: messages.TextInput("plan")})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			result, err := session.Run(t.Context())
			if err != nil || result.Error == nil {
				ends <- fmt.Sprintf("%+v, %v", result, err)
				return
			}
			ends <- string(result.Error.Code)
		}()
	}
	for range cap(ends) {
		if end := <-ends; end != string(messages.CodeModelContextLength) {
			t.Errorf("a run ended with %s", end)
		}
	}
	close(stop)
	const room = 200 << 20
	highest := <-most
	grown := highest - min(before, highest)
	if grown > room {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	t.Logf("the heap grew by %d MiB", grown>>20)
}
