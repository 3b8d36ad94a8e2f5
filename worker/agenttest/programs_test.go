package agenttest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/code"
	"github.com/longshore-run/longshore/tools/shell"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
)

// An agent that runs programs is tested without a sandbox: a function is all programs, and what the operator and the agent grant is
// checked as in a worker.
func ExampleProgramFunc() {
	programs := agenttest.ProgramFunc(func(c agenttest.Command) agenttest.Ended {
		if slices.Equal(c.Argv, []string{"go", "test", "./..."}) {
			return agenttest.Ended{Stdout: "--- FAIL: TestSum\n", ExitCode: 1}
		}
		return agenttest.Ended{}
	})
	tool, err := shell.Tool(shell.Config{Programs: []string{"go"}}, programs)
	if err != nil {
		panic(err)
	}
	run, err := agenttest.Play(context.Background(), agenttest.Config{Config: embed.Config{
		Tools: []tools.Tool{tool}, Agent: messages.Definition{Name: "tester", Tools: []string{"shell"}},
		Model: agenttest.Replies(
			agenttest.Call("shell", `{"argv":["go","test","./..."]}`),
			agenttest.Call("shell", `{"argv":["curl","evil.example"]}`),
			agenttest.Text("TestSum fails."),
		),
	}}, "Do the tests pass?")
	if err != nil {
		panic(err)
	}
	for _, action := range run.Actions() {
		fmt.Println(action)
	}
	fmt.Println("ran:", programs.Commands()[0], "and", len(programs.Commands())-1, "more")
	// Output:
	// model
	// tool shell: tool_failed
	// model
	// tool shell: policy
	// model
	// completed
	// ran: go test ./... and 0 more
}

// bothTools are shell and run_code on a stub.
func bothTools(t *testing.T, programs *agenttest.Sandbox) []tools.Tool {
	t.Helper()
	running, err := shell.Tool(shell.Config{Programs: []string{"*"}, ShellString: true}, programs)
	if err != nil {
		t.Fatal(err)
	}
	coding, err := code.Tool(code.Config{Python: "/usr/bin/python3"}, programs, "/longshore")
	if err != nil {
		t.Fatal(err)
	}
	return []tools.Tool{running, coding}
}

// told is what the model was told after each of its calls.
func told(m *agenttest.Model) (out []string) {
	for _, r := range m.Requests()[1:] {
		last := r.Messages[len(r.Messages)-1]
		out = append(out, last.Content[0].ToolResult.Content[0].Text)
	}
	return out
}

func TestScriptedPrograms(t *testing.T) {
	programs := agenttest.Programs(t, map[string]agenttest.Ended{
		"git log -1":             {Stdout: "c0ffee\n"},
		"wc -l < notes | tr 1 2": {Stdout: "2\n", Stderr: "slow\n"},
		"console.log(6*7)":       {Stdout: "42\n"},
		"print(6*7)":             {ExitCode: -1, Reason: process.Timeout},
		"git push":               {Err: &process.CommandError{Field: "path", Reason: "there is no program \"git\" on this machine"}},
	})
	model := agenttest.Replies(
		agenttest.Call("shell", `{"argv":["git","log","-1"]}`),
		agenttest.Call("shell", `{"command":"wc -l < notes | tr 1 2"}`),
		agenttest.Call("run_code", `{"language":"javascript","code":"console.log(6*7)"}`),
		agenttest.Call("run_code", `{"language":"python","code":"print(6*7)"}`),
		agenttest.Call("shell", `{"argv":["git","push"]}`),
		agenttest.Text("Done."),
	)
	agenttest.Run(t, agenttest.Config{Config: embed.Config{
		Model: model, Tools: bothTools(t, programs), Agent: messages.Definition{Name: "a", Tools: []string{"shell", "run_code"}, MaxSteps: 10},
	}}, "Work.").Want(t, "model", "tool shell", "model", "tool shell", "model", "tool run_code", "model", "tool run_code: tool_failed", "model", "tool shell: invalid_input", "model", "completed")
	want := []string{
		"exit code 0\nstdout:\nc0ffee", "exit code 0\nstdout:\n2\nstderr:\nslow", "exit code 0\nstdout:\n42",
		"stopped: it ran for longer than 10s\n(no output)", `Not run: path: there is no program "git" on this machine`,
	}
	if diff := cmp.Diff(want, told(model)); diff != "" {
		t.Error(diff)
	}
	var ran []string
	for _, c := range programs.Commands() {
		ran = append(ran, c.String())
	}
	if diff := cmp.Diff([]string{"git log -1", "wc -l < notes | tr 1 2", "console.log(6*7)", "print(6*7)", "git push"}, ran); diff != "" {
		t.Error(diff)
	}
}

// A program of a function works on the files of the run.
func TestProgramWritesFiles(t *testing.T) {
	programs := agenttest.ProgramFunc(func(c agenttest.Command) agenttest.Ended {
		return agenttest.Ended{Err: c.Files.Write("built", []byte(c.String()))}
	})
	dir := t.TempDir()
	agenttest.Run(t, agenttest.Config{Files: dir, Config: embed.Config{
		Model: agenttest.Replies(agenttest.Call("shell", `{"argv":["make","all"]}`), agenttest.Text("Done.")),
		Tools: bothTools(t, programs), Agent: messages.Definition{Name: "a", Tools: []string{"shell"}},
	}}, "Build.").Want(t, "model", "tool shell", "model", "completed")
	if got := programs.Commands()[0].Files; got == nil {
		t.Error("no files")
	}
	if text, err := os.ReadFile(filepath.Join(dir, "built")); err != nil || string(text) != "make all" {
		t.Errorf("%q, %v", text, err)
	}
}

// complaints takes what a test would fail with.
type complaints struct {
	testing.TB

	said []string
}

func (c *complaints) Errorf(format string, args ...any) {
	c.said = append(c.said, fmt.Sprintf(format, args...))
}

func TestCommandsThatAreNotScripted(t *testing.T) {
	failed := &complaints{TB: t}
	programs := agenttest.Programs(failed, map[string]agenttest.Ended{"ls": {}, "git status": {}})
	model := agenttest.Replies(agenttest.Call("shell", `{"argv":["git","push","--force"]}`), agenttest.Text("Done."))
	agenttest.Run(t, agenttest.Config{Config: embed.Config{
		Model: model, Tools: bothTools(t, programs), Agent: messages.Definition{Name: "a", Tools: []string{"shell"}},
	}}, "Push.").Want(t, "model", "tool shell: invalid_input", "model", "completed")
	if diff := cmp.Diff([]string{`the agent runs "git push --force", which the test does not script; it scripts ["git status" "ls"]`}, failed.said); diff != "" {
		t.Error(diff)
	}
	if got := told(model); !strings.HasPrefix(got[0], "Not run: path: is not scripted by the test") {
		t.Errorf("the model was told %q", got)
	}
}

// What refuses a program before it starts does so here.
func TestProgramsThatMayNotBegin(t *testing.T) {
	programs := agenttest.Programs(t, map[string]agenttest.Ended{"ls": {}})
	refused := errors.New("no lease")
	if _, err := programs.Run(t.Context(), process.Command{Path: "ls", Begin: func() error { return refused }}); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(refused)
	if _, err := programs.Run(ctx, process.Command{Path: "ls"}); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	if n := len(programs.Commands()); n != 0 {
		t.Errorf("%d ran", n)
	}
}
