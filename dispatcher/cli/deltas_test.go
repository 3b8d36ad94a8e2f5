package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
)

// tty is a terminal as far as the reporter needs one.
type tty struct {
	rows []string
	at   int
}

func (s *tty) Write(p []byte) (int, error) {
	if s.rows == nil {
		s.rows = []string{""}
	}
	for text := string(p); text != ""; {
		switch {
		case strings.HasPrefix(text, "\r\x1b[K"):
			s.rows[s.at], text = "", text[len("\r\x1b[K"):]
		case strings.HasPrefix(text, "\x1b[A"):
			s.at, text = s.at-1, text[len("\x1b[A"):]
		case text[0] == '\n':
			if s.at++; s.at == len(s.rows) {
				s.rows = append(s.rows, "")
			}
			text = text[1:]
		default:
			s.rows[s.at] += text[:1]
			text = text[1:]
		}
	}
	return len(p), nil
}

// shown is what is on the screen, without the progress line.
func (s *tty) shown() []string { return s.rows[:s.at] }

func delta(step, attempt, try, n int, kind messages.LiveKind, text string) messages.Live {
	return messages.Live{
		Type: messages.TypeLive, Run: "greeting", Step: step, Attempt: attempt, Try: try, N: n, Kind: kind, Text: text,
	}
}

func output(step int, call string, n int, text string) messages.Live {
	l := delta(step, 1, 1, n, messages.LiveToolOutput, text)
	l.CallID, l.Tool = call, "shell"
	return l
}

func TestReporterShowsReplies(t *testing.T) {
	const text, idea, reset = messages.LiveText, messages.LiveReasoning, messages.LiveReset
	step := func(r *report.Reporter, n uint64, step int) {
		r.Event(event(t, "greeting", n, messages.EventStepStart, messages.Step{Step: step}))
	}
	for name, tc := range map[string]struct {
		do   func(r *report.Reporter)
		want []string
	}{
		"as it comes": {func(r *report.Reporter) {
			r.Live(delta(1, 1, 1, 1, text, "Hel"))
			r.Live(delta(1, 1, 1, 2, text, "lo,\nworld."))
		}, []string{"  Hello,", "  world."}},
		"wrapped, and its end only": {func(r *report.Reporter) {
			r.Live(delta(1, 1, 1, 1, text, "first\n"+strings.Repeat("0123456789", 20)+"\n日本語日本語日本語日本語日本"))
		}, []string{
			"  67890123456789012", "  34567890123456789", "  01234567890123456", "  7890123456789",
			"  日本語日本語日本", "  語日本語日本",
		}},
		"hostile": {func(r *report.Reporter) {
			r.Live(delta(1, 1, 1, 1, text, "\x1b[2J\r\ta"))
		}, []string{`  \x1b[2J\x0d    a`}},
		"reasoning until there is text": {func(r *report.Reporter) {
			r.Live(delta(1, 1, 1, 1, idea, "Hm."))
		}, []string{"  Hm."}},
		"text after reasoning": {func(r *report.Reporter) {
			r.Live(delta(1, 1, 1, 1, idea, "Hm."))
			r.Live(delta(1, 1, 1, 2, text, "Yes."))
		}, []string{"  Yes."}},
		"a reset leaves it and says so": {func(r *report.Reporter) {
			r.Live(delta(1, 1, 1, 1, text, "a\nb\nc"))
			r.Live(delta(1, 1, 2, 2, reset, ""))
		}, []string{"a", "b", "c", "! the reply was cu…"}},
		"another worker begins anew": {func(r *report.Reporter) {
			r.Live(delta(1, 1, 1, 1, text, "a\nb\nc"))
			r.Live(delta(1, 2, 1, 1, text, "A"))
			r.Live(delta(1, 1, 1, 2, text, "d"))
		}, []string{"  A"}},
		"the whole reply replaces it": {func(r *report.Reporter) {
			step(r, 1, 1)
			r.Live(delta(1, 1, 1, 1, text, "Hel\nlo"))
			r.Event(event(t, "greeting", 2, messages.EventMessageEnd, messages.MessageEnd{Text: "Hello."}))
			r.Live(delta(1, 1, 1, 2, text, " late"))
		}, []string{"✓ step 1: Hello."}},
		"an error replaces it": {func(r *report.Reporter) {
			step(r, 1, 1)
			r.Live(delta(1, 1, 1, 1, text, "Hel"))
			r.Event(event(t, "greeting", 2, messages.EventError, messages.ErrorData{Message: "no"}))
		}, []string{"✗ step 1: the model call failed: no"}},
		"a retry stays": {func(r *report.Reporter) {
			step(r, 1, 1)
			r.Live(delta(1, 1, 1, 1, messages.LiveRetry, "connection refused (model_unreachable); attempt 2 follows in 1s"))
			r.Live(delta(1, 1, 2, 2, text, "Hello."))
		}, []string{"! step 1: the model call failed: connection refused", "  Hello."}},
		"the next step's comes early": {func(r *report.Reporter) {
			step(r, 1, 1)
			r.Live(delta(2, 1, 1, 1, text, "Next."))
			r.Event(event(t, "greeting", 2, messages.EventMessageEnd, messages.MessageEnd{Text: "Hello."}))
		}, []string{"✓ step 1: Hello.", "  Next."}},
		"what a program writes, until its call returns": {func(r *report.Reporter) {
			step(r, 1, 1)
			calls := []messages.ToolCall{{ID: "c1", Name: "shell"}, {ID: "c2", Name: "shell"}}
			r.Live(output(1, "c1", 1, "earl"))
			r.Event(event(t, "greeting", 2, messages.EventMessageEnd, messages.MessageEnd{Text: "Hello.", ToolCalls: calls}))
			r.Live(output(1, "c1", 2, "y"))
			r.Live(output(1, "c2", 1, "ok\x1b[2J\n1 of 2"))
			r.Live(output(1, "c2", 1, "seen"))
			r.Live(output(1, "other", 1, "of no call"))
			r.Event(event(t, "greeting", 3, messages.EventToolExecutionEnd, messages.ToolExecution{CallID: "c1", ToolName: "shell", Result: "r"}))
			r.Live(output(1, "c1", 3, "late"))
		}, []string{"✓ step 1: Hello. →…", "✓ step 1: sh…", `  ok\x1b[2J`, "  1 of 2"}},
		"a result replaces what a program wrote": {func(r *report.Reporter) {
			step(r, 1, 1)
			r.Event(event(t, "greeting", 2, messages.EventMessageEnd, messages.MessageEnd{ToolCalls: []messages.ToolCall{{ID: "c1", Name: "shell"}}}))
			r.Live(output(1, "c1", 1, "half"))
			r.Event(event(t, "greeting", 3, messages.EventToolExecutionEnd, messages.ToolExecution{CallID: "c1", ToolName: "shell", Result: "r"}))
		}, []string{"✓ step 1: → shell …", "✓ step 1: sh…"}},
		"not of several runs": {func(r *report.Reporter) {
			r.Live(delta(1, 1, 1, 1, text, "a\nb"))
			r.Begin("another")
			r.Live(delta(1, 1, 1, 2, text, "c"))
		}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s tty
				r := report.NewReporter(&s, report.Options{Terminal: true, Deltas: true, Width: func() int { return 20 }})
				r.Begin("greeting")
				tc.do(r)
				var got []string
				for _, row := range s.shown() {
					row, _, _ = strings.Cut(row, " (")
					got = append(got, row)
				}
				if diff := cmp.Diff(tc.want, append([]string{}, got...)); diff != "" {
					t.Error(diff)
				}
				r.Close()
				for _, row := range s.rows[s.at:] {
					if row != "" {
						t.Errorf("left on the screen: %q", row)
					}
				}
			})
		})
	}
}

func TestReporterShowsNoRepliesElsewhere(t *testing.T) {
	for name, options := range map[string]report.Options{
		"no terminal": {Deltas: true}, "not asked for": {Terminal: true, Width: func() int { return 200 }},
	} {
		synctest.Test(t, func(t *testing.T) {
			var s tty
			r := report.NewReporter(&s, options)
			r.Begin("greeting")
			r.Live(delta(1, 1, 1, 1, messages.LiveText, "Hello"))
			if got := strings.Join(s.rows, "\n"); strings.Contains(got, "Hello") {
				t.Errorf("%s: %q", name, got)
			}
			r.Close()
		})
	}
}

// While a run is watched with --deltas its reply comes in pieces, and whole once.
func TestWatchDeltas(t *testing.T) {
	f := newFleet(t)
	b, err := bus.Open(t.Context(), embeddedtest.Conn(t, f.servers), bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		options report.Options
		args    []string
		piece   string // what shows that a piece was seen
		errs    func(out io.Writer) io.Writer
	}{
		"terminal": {
			options: report.Options{Terminal: true}, piece: "  Hel",
			errs: func(out io.Writer) io.Writer { return out },
		},
		"json": {
			options: report.Options{Raw: true}, args: []string{"-o", "json"}, piece: `{"type":"longshore.live.v1","run":"`,
			errs: func(io.Writer) io.Writer { return io.Discard },
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := dispatcher.Run("greeting-" + name)
			var out safeBuffer
			root := &cobra.Command{Use: "longshore"}
			root.AddCommand(cli.Commands(f.connect, tc.options)...)
			root.SetOut(&out)
			root.SetErr(tc.errs(&out))
			root.SetArgs(append([]string{"watch", run.Run, "--deltas"}, tc.args...))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- root.ExecuteContext(ctx) }()
			l := messages.Live{Type: messages.TypeLive, Run: run.Run, Step: 1, Attempt: 1, Try: 1, N: 1, Kind: messages.LiveText, Text: "Hel"}
			for !strings.Contains(out.String(), tc.piece) { // until the watcher is there
				if err := events.New(b).PublishLive(run, &l); err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-ended:
					t.Fatalf("it ended with %v", err)
				case <-time.After(10 * time.Millisecond):
				}
			}
			f.work(t, run, messages.AgentResult{Success: true, Status: messages.StatusCompleted, Result: "Hello."})
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if name == "json" {
				for line := range strings.Lines(out.String()) {
					if !json.Valid([]byte(line)) || strings.Contains(line, "Hello.") && strings.Contains(line, messages.TypeLive) {
						t.Errorf("got %q", line)
					}
				}
				return
			}
			var s tty
			_, _ = s.Write([]byte(colorCodes.ReplaceAllString(out.String(), "")))
			final := strings.Join(s.rows, "\n")
			if strings.Count(final, "step 1: Hello.") != 1 || strings.Contains(final, "  Hel\n") || !strings.Contains(final, "\nHello.\n") {
				t.Errorf("in the end the screen shows\n%s", final)
			}
		})
	}
}
