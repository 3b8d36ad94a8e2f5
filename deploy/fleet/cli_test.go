//go:build unix

package fleet_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// outcome is how a command ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// call runs the binary to its end.
func call(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	p := spawn(t, strings.Join(args, " "), env, binary, args...)
	code := p.wait()
	stderr := strings.Join(p.log(), "\n")
	if stderr != "" {
		stderr += "\n"
	}
	return outcome{code, p.out.String(), stderr}
}

// decode reads one line of JSON, and nothing after it.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		t.Errorf("not one line: %q", text)
	}
	return v
}

const script = `
scenes:
  - match: fail
    turns: [{error: {class: auth, message: no such key, status: 401}}]
  - turns:
      - text: I write.
        calls: [{name: write_file, arguments: {filePath: sub/hello.txt, content: "hi\n"}}]
      - text: "Done: ${lastToolResult}"
`

func scriptFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRun(t *testing.T) {
	t.Parallel()
	env := []string{"LONGSHORE_SCRIPT=" + scriptFile(t)}
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		got := call(t, env, "run", "hello")
		if got.code != 0 || got.stdout != "Done: Wrote 3 bytes to sub/hello.txt\n" || !strings.Contains(got.stderr, "write_file") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("json in place", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		got := call(t, env, "run", "hello", "-o", "json", "--workspace", dir)
		r := decode[messages.AgentResult](t, got.stdout)
		if got.code != 0 || !r.Success || r.Steps != 2 || r.Result != any("Done: Wrote 3 bytes to sub/hello.txt") {
			t.Errorf("%+v", got)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "sub", "hello.txt")); err != nil || string(data) != "hi\n" {
			t.Errorf("file: %q, %v", data, err)
		}
	})
	t.Run("failed", func(t *testing.T) {
		t.Parallel()
		got := call(t, env, "run", "fail", "-o", "json")
		r := decode[messages.AgentResult](t, got.stdout)
		if got.code != 1 || r.Success || r.Error == nil || r.Error.Code != messages.CodeModelAuth {
			t.Errorf("%+v, error %v", got, r.Error)
		}
	})
	t.Run("failed is told once", func(t *testing.T) {
		t.Parallel()
		got := call(t, env, "run", "fail")
		if got.code != 1 || got.stdout != "" || strings.Count(got.stderr, "no such key") != 1 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("without a model", func(t *testing.T) {
		t.Parallel()
		got := call(t, nil, "run", "hello")
		if got.code != 0 || got.stdout == "" || !strings.Contains(got.stderr, "No model is configured") {
			t.Errorf("%+v", got)
		}
	})
}

// TestRefused has what ends with 2, one clear line, and before anything is connected or started.
func TestRefused(t *testing.T) {
	t.Parallel()
	closed := "nats://127.0.0.1:1" // nothing listens there: a connection attempt would show in the output
	openai := []string{"OPENAI_API_KEY=sk-123456", "OPENAI_MODEL=m"}
	worker := append([]string{"NATS_URL=" + closed, "REDIS_URL=none"}, openai...)
	for _, tc := range []struct {
		name string
		env  []string
		args []string
		want string
	}{
		{"unknown flag", nil, []string{"run", "hello", "--no-such-flag"}, "--no-such-flag"},
		{"unknown command", nil, []string{"wroker"}, `unknown command "wroker"`},
		{"no text", nil, []string{"run"}, "give a task"},
		{"two texts", nil, []string{"run", "a", "b"}, "in quotes"},
		{"empty text", nil, []string{"run", ""}, "input: is empty"},
		{"strange output", nil, []string{"run", "hello", "-o", "yaml"}, "text or json"},
		{"agents of a fleet elsewhere", []string{"NATS_URL=" + closed}, []string{"run", "hello", "--agents", "."}, "--agents"},
		{"an answer without a folder", []string{"NATS_URL=" + closed}, []string{"run", "hello", "--yes"}, "--workspace"},
		{"an answer without a fleet elsewhere", nil, []string{"run", "hello", "--workspace", ".", "--overwrite"}, "NATS_URL"},
		{"not a workspace", nil, []string{"run", "hello", "--workspace", "no-such-folder"}, "is not a folder"},
		{"tenant with a wildcard", nil, []string{"run", "hello", "--tenant", "*"}, "tenant"},
		{"no such task file", nil, []string{"run", "-f", "no-such-file.json"}, "no-such-file.json"},
		{"client with an invalid address", []string{"NATS_URL=http://x"}, []string{"list"}, "NATS_URL"},
		{"submit without text", []string{"NATS_URL=" + closed}, []string{"submit"}, "needs the task's text"},
		{"status of a strange id", []string{"NATS_URL=" + closed}, []string{"status", "a.b"}, "id"},
		{"worker with nothing", nil, []string{"worker"}, "NATS_URL is missing"},
		{"worker without a model", []string{"NATS_URL=" + closed, "REDIS_URL=none"}, []string{"worker"}, "no model provider configured"},
		{"worker without Redis", append([]string{"NATS_URL=" + closed}, openai...), []string{"worker"}, "REDIS_URL is missing"},
		{"worker with a key and no model", []string{"NATS_URL=" + closed, "OPENAI_API_KEY=sk-123456"}, []string{"worker"}, "OPENAI_MODEL is missing"},
		{"worker with a model and no key", []string{"NATS_URL=" + closed, "OPENAI_MODEL=m"}, []string{"worker"}, "OPENAI_API_KEY is missing"},
		{"worker with two identities", append(worker, "NATS_CREDS=a", "NATS_NKEY=b"), []string{"worker"}, "contradict each other"},
		{"worker with a strange number", append(worker, "LONGSHORE_SLOTS=many"), []string{"worker"}, `LONGSHORE_SLOTS: must be a whole number such as 64, got "many"`},
		{"worker with a strange duration", append(worker, "LONGSHORE_DRAIN_TIMEOUT=soon"), []string{"worker"}, "LONGSHORE_DRAIN_TIMEOUT"},
		{"worker without slots", append(worker, "LONGSHORE_SLOTS=0"), []string{"worker"}, "LONGSHORE_SLOTS"},
		{"worker with a strange Redis", append(worker, "REDIS_URL=http://user:pa55word@x"), []string{"worker"}, "REDIS_URL"},
		{"worker without its providers file", append(worker, "LONGSHORE_PROVIDERS=no-such-file.yaml"), []string{"worker"}, "LONGSHORE_PROVIDERS: open no-such-file.yaml"},
		{"worker with arguments", worker, []string{"worker", "now"}, "now"},
		{"worker with a strange level", append(worker, "LONGSHORE_LOG_LEVEL=loud"), []string{"worker"}, "LONGSHORE_LOG_LEVEL"},
		{
			"dispatcher that forgets too soon",
			[]string{"NATS_URL=" + closed, "LONGSHORE_RETENTION=400h"},
			[]string{"dispatcher"},
			"LONGSHORE_EVENTS_MAX_AGE must be longer than LONGSHORE_RETENTION",
		},
		{"dev with an impatient queue", []string{"LONGSHORE_ACK_WAIT=1ms"}, []string{"dev"}, "LONGSHORE_ACK_WAIT"},
		{"dev with a model and no key", []string{"OPENAI_MODEL=m"}, []string{"dev"}, "OPENAI_API_KEY is missing"},
		{"dev without slots", nil, []string{"dev", "--slots", "-1"}, "--slots"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := call(t, tc.env, tc.args...)
			if got.code != 2 || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 ||
				!strings.HasPrefix(got.stderr, "longshore: ") || !strings.Contains(got.stderr, tc.want) || strings.Contains(got.stderr, "pa55word") {
				t.Errorf("ended with %d, stdout %q, stderr %q; want 2 and one line with %q", got.code, got.stdout, got.stderr, tc.want)
			}
		})
	}
}

func TestHelpListsEveryVariable(t *testing.T) {
	t.Parallel()
	for name, vars := range map[string][]settings.Variable{
		"worker":     settings.Variables(settings.Worker{}),
		"dispatcher": settings.Variables(settings.Dispatcher{}),
		"dev":        settings.Variables(settings.Dev{}),
	} {
		got := call(t, nil, name, "--help")
		if got.code != 0 || len(vars) < 5 {
			t.Errorf("%s --help: %d, %d variables", name, got.code, len(vars))
		}
		for _, v := range vars {
			if !strings.Contains(got.stdout, "  "+v.Name+" ") || !strings.Contains(got.stdout, v.Help) {
				t.Errorf("%s --help does not tell of %s", name, v.Name)
			}
		}
	}
}

func TestHelpNamesEveryCommandBelowAHeading(t *testing.T) {
	t.Parallel()
	got := call(t, nil, "--help")
	grouped, rest, found := strings.Cut(got.stdout, "Additional Commands:")
	if got.code != 0 || !found {
		t.Fatalf("%+v", got)
	}
	rest, _, _ = strings.Cut(rest, "\n\n")
	for line := range strings.Lines(strings.TrimSpace(rest)) {
		if name := strings.Fields(line)[0]; name != "completion" && name != "help" {
			t.Errorf("%s is in no group", name)
		}
	}
	for _, heading := range []string{"Start a fleet", "Submit tasks", "Decide for", "Look back", "What a fleet keeps"} {
		if !strings.Contains(grouped, heading) {
			t.Errorf("no heading %q", heading)
		}
	}
}

func TestUnusableAddress(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	taken := l.Addr().String()
	for _, tc := range []struct {
		flag, addr string
		code       int
		want       string
	}{
		{"--addr", taken, 2, "something listens there already"},
		{"--nats-addr", taken, 2, "something listens there already"},
		{"--redis-addr", taken, 2, "something listens there already"},
		{"--addr", "nowhere", 2, "--addr: address nowhere: missing port"},
		{"--nats-addr", "nowhere", 2, "--nats-addr: address nowhere: missing port"},
		{"--redis-addr", "nowhere", 2, "--redis-addr: address nowhere: missing port"},
	} {
		t.Run(tc.flag+" "+tc.addr, func(t *testing.T) {
			t.Parallel()
			args := []string{"dev", "--data", t.TempDir(), "--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0"}
			args[slices.Index(args, tc.flag)+1] = tc.addr
			got := call(t, []string{"LONGSHORE_LOG_LEVEL=error"}, args...)
			if got.code != tc.code || !strings.Contains(got.stderr, tc.addr) || !strings.Contains(got.stderr, tc.want) {
				t.Errorf("ended with %d: %q, want %d and %q", got.code, got.stderr, tc.code, tc.want)
			}
		})
	}
}

// A ready file of a fleet that was here before is none of the one that starts.
func TestReadyFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ready")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := call(t, nil, "dev", "--data", t.TempDir(), "--addr", "nowhere", "--ready-file", file); got.code != 2 {
		t.Errorf("ended with %d: %q", got.code, got.stderr)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old file: %v", err)
	}
	got := call(t, nil, "dev", "--data", t.TempDir(), "--addr", "127.0.0.1:0", "--ready-file", file+"/here")
	if got.code != 2 || !strings.Contains(got.stderr, "--ready-file: ") {
		t.Errorf("no folder for it: ended with %d: %q", got.code, got.stderr)
	}
}

// TestCommands is the life of three runs as a person or a script sees it.
func TestCommands(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, func(c *modelCall) reply {
		switch c.Task {
		case "hold":
			return reply{Hold: true}
		case "fail":
			return reply{Status: 400, Body: `{"error":{"message":"no"}}`}
		default:
			return turn(c, 2)
		}
	})
	w.worker("first")
	env := []string{"NATS_URL=" + w.nats}
	ok := func(args ...string) string {
		t.Helper()
		got := call(t, env, append(args, "-o", "json")...)
		if got.code != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
		return got.stdout
	}
	id := decode[control.SubmitReply](t, ok("submit", "work", "--label", "a=b")).ID
	var watched []messages.Event
	for line := range strings.Lines(ok("watch", id)) {
		watched = append(watched, decode[messages.Event](t, line))
	}
	want := []string{
		"run_queued", "run_started", "step_start", "message_end", "tool_execution_start", "tool_execution_end", "step_end",
		"step_start", "message_end", "step_end", "turn_end", "run_finished",
	}
	if diff := cmp.Diff(want, names(watched)); diff != "" {
		t.Errorf("watch: %s", diff)
	}
	r := decode[messages.AgentResult](t, ok("result", id))
	completed(t, &r, "Done: Wrote 1 bytes to step-0.txt")
	if s := decode[struct {
		control.RunStatus

		Run    *control.RunSummary
		Result *messages.AgentResult
	}](t, ok("status", id)); s.Status != messages.StatusCompleted || s.ID != id || s.Run.ToolCalls != 1 || !s.Result.Success {
		t.Errorf("status: %+v", s)
	}

	if s := decode[control.SubmitReply](t, ok("submit", "hold", "--id", "held")); s.ID != "held" {
		t.Errorf("submit: %+v", s)
	}
	w.model.next(t)
	if got := call(t, env, "result", "held"); got.code != 1 || !strings.Contains(got.stderr, "has not ended") {
		t.Errorf("result of a run that has not ended: %+v", got)
	}
	if s := decode[control.RunStatus](t, ok("cancel", "held", "--reason", "enough")); s.ID != "held" || !s.Cancel && !s.Status.Ended() {
		t.Errorf("cancel: %+v", s)
	}
	got := call(t, env, "watch", "held")
	if got.code != 1 || !strings.Contains(got.stderr, "cancelled: enough") {
		t.Errorf("watch of a cancelled run: %+v", got)
	}

	got = call(t, env, "run", "fail", "-o", "json")
	if r := decode[messages.AgentResult](t, got.stdout); got.code != 1 || r.Status != messages.StatusFailed {
		t.Errorf("run on the fleet: %+v", got)
	}
	statuses := map[string]int{}
	for line := range strings.Lines(ok("list")) {
		statuses[string(decode[control.RunSummary](t, line).Status)]++
	}
	if diff := cmp.Diff(map[string]int{"completed": 1, "cancelled": 1, "failed": 1}, statuses); diff != "" {
		t.Errorf("list: %s", diff)
	}
	if got := call(t, env, "status", "unknown", "-o", "json"); got.code != 1 || got.stdout != "" || !strings.Contains(got.stderr, "no run unknown") {
		t.Errorf("status of an unknown run: %+v", got)
	}
	if got := call(t, env, "submit", "other", "--id", "held"); got.code != 1 || !strings.Contains(got.stderr, "belongs to another task") {
		t.Errorf("submit with a taken id: %+v", got)
	}
}
