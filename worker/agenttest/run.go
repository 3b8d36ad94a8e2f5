package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/worker/embed"
)

// Start is when the clock of a test begins.
func Start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Clock begins at Start and advances by a millisecond at every look. Safe for concurrent use.
func Clock() func() time.Time {
	var mu sync.Mutex
	now := Start()
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Millisecond)
		return now
	}
}

// patience bounds a run of a test.
const patience = time.Minute

// Config of a run. Only Model is needed.
type Config struct {
	// Config is that of the service that the run is worked by. Now is by default a Clock, and Workspace the folder Files.
	embed.Config

	Files string        // folder that the run works in; default: an empty one
	Task  messages.Task // besides its input
	// Begun, if set, gets the session before its run begins: to abort it, to answer it, to listen.
	Begun func(s *embed.Session)
}

// Record is what a run did.
type Record struct {
	Result messages.AgentResult
	Events []messages.Event
	Log    []record.Entry
}

// Run works a task to its end and fails the test when it has none.
func Run(tb testing.TB, cfg Config, input string) *Record {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	if cfg.Files == "" {
		cfg.Files = tb.TempDir()
	}
	r, err := Play(ctx, cfg, input)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// Play is Run without a test. An error is the platform's or ctx's: a run that failed is a Record.
func Play(ctx context.Context, cfg Config, input string) (*Record, error) {
	if cfg.Files == "" {
		dir, err := os.MkdirTemp("", "agenttest")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		cfg.Files = dir
	}
	if cfg.Now == nil {
		cfg.Now = Clock()
	}
	if cfg.Task.Seed == nil {
		cfg.Task.Seed = new(int64(1))
	}
	cfg.Task.Input = messages.TextInput(input)
	if cfg.Workspace == nil {
		cfg.Workspace = sandbox.InPlace(cfg.Files, sandbox.Limits{})
	}
	service, err := embed.New(cfg.Config)
	if err != nil {
		return nil, err
	}
	session, err := service.Session(cfg.Task)
	if err != nil {
		return nil, err
	}
	r := &Record{}
	session.On(func(e messages.Event) { r.Events = append(r.Events, e) })
	if cfg.Begun != nil {
		cfg.Begun(session)
	}
	if r.Result, err = session.Run(ctx); err != nil {
		return nil, err
	}
	r.Log = session.Log()
	return r, nil
}

// Actions are what the run did, in order, made of its events:
//
//	model                        a reply
//	tool NAME                    a tool's result
//	tool NAME: CODE              a call that failed or was refused
//	model failed: CODE           a model call that failed for good
//	wait REASON, go on           a park and its end
//	hook POINT failed
//	completed, cancelled         how it ended
//	failed: CODE
func (r *Record) Actions() []string {
	var out []string
	for _, e := range r.Events {
		if s := action(&e); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func action(e *messages.Event) string {
	switch e.Name() {
	case messages.EventMessageEnd:
		return "model"
	case messages.EventToolExecutionEnd:
		d := data[messages.ToolExecution](e)
		if d.IsError {
			return "tool " + d.ToolName + ": " + string(d.Code)
		}
		return "tool " + d.ToolName
	case messages.EventError:
		return "model failed: " + string(data[messages.ErrorData](e).Code)
	case messages.EventRunWaiting:
		return "wait " + data[messages.RunWaiting](e).Reason
	case messages.EventRunResumed:
		return "go on"
	case messages.EventSteered:
		return "told"
	case messages.EventHookFailed:
		return "hook " + string(data[messages.HookFailure](e).On) + " failed"
	case messages.EventPolicyViolation:
		d := data[messages.PolicyViolation](e)
		return "policy " + d.Action + " " + string(d.Point) + " by " + d.Rule
	case messages.EventMemoryWrite:
		var words []string
		for _, c := range data[messages.MemoryWritten](e).Changes {
			words = append(words, c.Memory+" "+c.Op+" "+c.Name)
		}
		return "memory " + strings.Join(words, ", ")
	case messages.EventMemoryRecalled:
		return fmt.Sprintf("memory recalled %d", len(data[messages.MemoryRecalled](e).Memories))
	case messages.EventRunFinished:
		d := data[messages.RunFinished](e)
		if d.Result.Status == messages.StatusFailed && d.Result.Error != nil {
			return "failed: " + string(d.Result.Error.Code)
		}
		return string(d.Result.Status)
	default:
		return ""
	}
}

// data of an event that the loop made a moment ago.
func data[T any](e *messages.Event) (d T) {
	_ = json.Unmarshal(e.Data, &d) // our own data types always decode
	return d
}

// Names are the names of the events, in order.
func (r *Record) Names() []string {
	out := make([]string, len(r.Events))
	for i := range r.Events {
		out[i] = r.Events[i].Name()
	}
	return out
}

// Of are the events of a name.
func (r *Record) Of(name string) []messages.Event {
	return slices.DeleteFunc(slices.Clone(r.Events), func(e messages.Event) bool { return e.Name() != name })
}

// JSON is the events as the world sees them, one a line.
func (r *Record) JSON() string {
	var b strings.Builder
	for i := range r.Events {
		fmt.Fprintf(&b, "%s\n", record.AppendEvent(nil, &r.Events[i]))
	}
	return b.String()
}

// Want fails the test unless these are the Actions.
func (r *Record) Want(tb testing.TB, actions ...string) {
	tb.Helper()
	if diff := cmp.Diff(actions, r.Actions()); diff != "" {
		tb.Errorf("actions (-want +got):\n%s", diff)
	}
}
