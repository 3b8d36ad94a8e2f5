package cli_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
)

// at is a clock that shows the time of the event before.
type at struct{ time.Time }

func (a *at) now() time.Time { return a.Time }

// report shows events as they came, and what each run ended with.
func reported(t *testing.T, options report.Options, files ...string) string {
	t.Helper()
	var out bytes.Buffer
	clock := &at{noon.Add(-2 * time.Minute)}
	options.Now = clock.now
	synctest.Test(t, func(t *testing.T) { // so that the spinner stands still
		r := report.NewReporter(&out, options)
		defer r.Close()
		for _, file := range files {
			events, _ := recorded(t, file)
			r.Begin(events[0].Subject)
		}
		for _, file := range files {
			events, _ := recorded(t, file)
			for _, e := range events {
				clock.Time = e.Time.Add(time.Second)
				r.Event(e)
				r.Event(e) // at least once
			}
			last := events[len(events)-1]
			if err := r.Done(finished(t, last)); err != nil {
				t.Error(err)
			}
		}
	})
	return out.String()
}

func TestReporterPlain(t *testing.T) {
	golden(t, "report.plain.txt", reported(t, report.Options{}, "report.jsonl"))
	golden(t, "failed.plain.txt", reported(t, report.Options{}, "failed.jsonl"))
	golden(t, "plan.plain.txt", reported(t, report.Options{}, "plan.jsonl"))
}

func TestReporterOnTerminal(t *testing.T) {
	width := func() int { return 72 }
	got := reported(t, report.Options{Terminal: true, Width: width}, "report.jsonl")
	golden(t, "report.terminal.txt", readable(got))
	golden(t, "report.screen.txt", strings.Join(screen(t, got, 72), "\n"))
	got = reported(t, report.Options{Terminal: true, Width: width, Color: true}, "failed.jsonl")
	golden(t, "failed.color.txt", readable(got))
}

func TestReporterOfSeveralRuns(t *testing.T) {
	names := map[string]string{"01KDZ6XV00000000000000000A": "report", "nightly-7": "count", "third": "wait"}
	golden(t, "several.plain.txt", reported(t, report.Options{Names: names}, "report.jsonl", "failed.jsonl"))
	got := reported(t, report.Options{Names: names, Terminal: true, Width: func() int { return 100 }}, "report.jsonl", "failed.jsonl")
	golden(t, "several.terminal.txt", readable(got))
}

func TestReporterFitsEveryWidth(t *testing.T) {
	for width := range 120 {
		got := reported(t, report.Options{Terminal: true, Color: true, Width: func() int { return width }}, "report.jsonl")
		screen(t, got, max(width, 20)) // fails on a line that is too long
	}
}

func TestReporterWithoutColorOrTerminalSendsNoCodes(t *testing.T) {
	plain := reported(t, report.Options{Color: true}, "report.jsonl", "failed.jsonl")
	if strings.ContainsAny(plain, "\x1b\r") {
		t.Errorf("control codes without a terminal: %q", plain)
	}
	terminal := strings.ReplaceAll(reported(t, report.Options{Terminal: true}, "report.jsonl"), "\r\x1b[K", "")
	if strings.ContainsAny(terminal, "\x1b\r") {
		t.Errorf("unexpected colors: %q", terminal)
	}
}

func TestReporterTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out safeBuffer
		r := report.NewReporter(&out, report.Options{Terminal: true})
		r.Begin("nightly-7")
		time.Sleep(65 * time.Second) // of the bubble
		synctest.Wait()
		if last := lastLine(out.String()); !strings.Contains(last, "nightly-7 waiting for a worker · 1m0") {
			t.Errorf("the progress line is %q", last)
		}
		r.Close()
		r.Close()
		drawn := out.String()
		if !strings.HasSuffix(drawn, "\r\x1b[K") {
			t.Errorf("the progress line stays: %q", lastLine(drawn))
		}
		time.Sleep(time.Second)
		if out.String() != drawn {
			t.Error("it writes after Close")
		}
	})
}

func TestReporterOfRunsAtOnce(t *testing.T) {
	var out safeBuffer
	r := report.NewReporter(&out, report.Options{Terminal: true, Names: map[string]string{"a": "a", "b": "b", "c": "c"}})
	var runs sync.WaitGroup
	for _, id := range []string{"a", "b", "c"} {
		runs.Go(func() {
			r.Begin(id)
			for n := range uint64(50) {
				r.Event(event(t, id, n+1, "message_end", messages.MessageEnd{Text: "text", Usage: messages.Usage{Total: 1}}))
			}
			if err := r.Done(&messages.AgentResult{ID: id, Success: true, Status: messages.StatusCompleted}); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	r.Close()
	shown := strings.Join(screen(t, out.String(), 80), "\n")
	if n := strings.Count(shown, " ✓ text (1 token, 0ms)"); n != 150 {
		t.Errorf("%d replies of 150 on the screen", n)
	}
	if n := strings.Count(shown, " ✓ completed (0 steps, 0ms)"); n != 3 || strings.Contains(shown, "done ·") {
		t.Errorf("%d ends of 3 on the screen:\n%s", n, shown)
	}
}

func TestReporterWritesResultsElsewhere(t *testing.T) {
	hostile := "done\x1b]0;gone\x07\r\nline \u202e2\x9b"
	for name, tc := range map[string]struct {
		raw  bool
		want string
	}{
		"to a file":     {true, hostile + "\n"},
		"to a terminal": {false, `done\x1b]0;gone\x07` + "\n" + `line \u202e2\x9b` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var steps, out bytes.Buffer
			r := report.NewReporter(&steps, report.Options{Out: &out, Raw: tc.raw})
			defer r.Close()
			if err := r.Done(&messages.AgentResult{ID: "x", Success: true, Status: messages.StatusCompleted, Result: hostile}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(steps.String(), "completed (0 steps, 0ms)\n") {
				t.Errorf("steps: %q", steps.String())
			}
		})
	}
}

func TestReporterTellsThatAResultWasNotWritten(t *testing.T) {
	r := report.NewReporter(&bytes.Buffer{}, report.Options{Out: full{}})
	defer r.Close()
	err := r.Done(&messages.AgentResult{ID: "x", Success: true, Result: "text"})
	if !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

var errFull = errors.New("no space left on device")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestReporterShowsResultsOfOtherTypes(t *testing.T) {
	for want, result := range map[string]any{
		"": nil, "[\n  1\n]\n": []any{1}, "7\n": 7,
	} {
		var out bytes.Buffer
		r := report.NewReporter(&bytes.Buffer{}, report.Options{Out: &out})
		if err := r.Done(&messages.AgentResult{ID: "x", Success: true, Result: result}); err != nil {
			t.Fatal(err)
		}
		r.Close()
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
	}
}

// hostileEvents returns events with the text in every field that an untrusted party may set.
func hostileEvents(tb testing.TB, text string) []messages.Event {
	tb.Helper()
	until := noon
	call := messages.ToolCall{ID: text, Name: text, Arguments: `{"path":` + quoted(tb, text) + `}`}
	odd := event(tb, text, 20, "run_started", 1)
	odd.Type, odd.Sequence = "longshore."+text+".v1", text
	return []messages.Event{
		event(tb, text, 1, "run_queued", messages.RunQueued{Agent: text, Priority: messages.Priority(text), Input: text, QueuedAt: noon.Add(time.Hour)}),
		event(tb, text, 2, "run_started", messages.RunStarted{Agent: text, Model: text, Tools: []string{text, text}, MaxSteps: -1}),
		event(tb, text, 3, "step_start", messages.Step{Step: 3}),
		event(tb, text, 4, "message_end", messages.MessageEnd{
			Text: text, ToolCalls: []messages.ToolCall{call, {ID: "b", Name: text, Arguments: text}}, Stop: messages.StopReason(text),
			Usage: messages.Usage{Input: -1, Total: -7}, Millis: 1 << 62,
		}),
		event(tb, text, 5, "tool_execution_start", messages.ToolExecution{CallID: text, ToolName: text, Arguments: text}),
		event(tb, text, 6, "run_waiting", messages.RunWaiting{Reason: text, CallID: text, Until: &until}),
		event(tb, text, 7, "run_resumed", messages.RunWaiting{Reason: text}),
		event(tb, text, 8, "tool_execution_end", messages.ToolExecution{CallID: text, ToolName: text, Result: text, IsError: true, Code: messages.Code(text), Millis: -5}),
		event(tb, text, 9, "tool_execution_end", messages.ToolExecution{CallID: "unknown", ToolName: text, Result: text}),
		event(tb, text, 10, "cancel_requested", messages.CancelAsked{By: text, Reason: text}),
		event(tb, text, 11, "error", messages.ErrorData{Message: text, Code: messages.Code(text)}),
		event(tb, text, 12, "step_end", messages.Step{Step: -1, Status: messages.StepStatus(text)}),
		event(tb, text, 13, "events_expired", map[string]int{"first": 13, "last": 13}),
		event(tb, text, 14, "events_missing", text),
		event(tb, text, 15, "turn_end", text),
		event(tb, text, 16, "message_end", []string{text}),
		odd,
		event(tb, text, 17, "run_finished", messages.RunFinished{Result: messages.AgentResult{
			ID: text, Status: messages.Status(text), Result: text, Error: &messages.RunError{Message: text, Code: messages.Code(text)},
		}}),
	}
}

func FuzzReporterNeverLetsTextSteerATerminal(f *testing.F) {
	for _, s := range []string{
		"", "plain", "\x1b[2J\x1b]0;title\x07", "a\r\nb\rc", "\u202egnp.exe", "\x9b31m", "\u009b31m", "\x00\x7f\u2028\u2029\u0085",
		"Z" + strings.Repeat("\u0301", 500), "👩‍👩‍👧 二二二 ﷽", "\xff\xfe", strings.Repeat("二", 300), "\ufeff\u200b\U000e0041", "a\tb",
	} {
		f.Add(s, uint8(40))
		f.Add(s, uint8(250))
	}
	f.Fuzz(func(t *testing.T, text string, columns uint8) {
		width := max(int(columns), 20)
		for _, options := range []report.Options{
			{Terminal: true, Color: true, Width: func() int { return width }}, {},
		} {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				r := report.NewReporter(&out, options)
				r.Begin(text)
				for _, e := range hostileEvents(t, text) {
					r.Event(e)
				}
				r.Note(text, text)
				if err := r.Done(&messages.AgentResult{ID: text, Result: text}); err != nil {
					t.Fatal(err)
				}
				r.Close()
				harmless(t, out.String(), options.Terminal)
			})
		}
	})
}

// harmless fails on anything but printable text, line breaks, tabs, spaces and, on a terminal, our own codes.
func harmless(t *testing.T, s string, terminal bool) {
	t.Helper()
	if terminal {
		s = strings.NewReplacer("\r\x1b[K", "", "\x1b[2m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(s)
	}
	if !utf8.ValidString(s) {
		t.Errorf("invalid UTF-8: %q", s)
	}
	marks := 0
	for _, r := range s {
		if unicode.Is(unicode.M, r) || r == '\u200c' || r == '\u200d' {
			if marks++; marks > 4 {
				t.Fatalf("more than 4 marks on a character: %q", s)
			}
			continue
		}
		marks = 0
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' && !unicode.Is(unicode.Zs, r) {
			t.Fatalf("%U gets through: %q", r, s)
		}
	}
}
