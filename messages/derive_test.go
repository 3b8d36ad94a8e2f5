package messages_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

func TestEventsAreTheSameTwice(t *testing.T) {
	t.Parallel()
	for name, entries := range stories(t) {
		for _, e := range entries {
			noDiff(t, name, record.Events(ref, e), record.Events(ref, e))
		}
	}
}

func TestEventsAreNumberedWithoutGaps(t *testing.T) {
	t.Parallel()
	for name, entries := range stories(t) {
		n := uint64(0)
		for _, e := range entries {
			events := record.Events(ref, e)
			if len(events) != e.Head.Events {
				t.Errorf("%s, entry %d: %d events, and its head says %d", name, e.Seq, len(events), e.Head.Events)
			}
			for _, ev := range events {
				n++
				if ev.Number() != n || ev.ID != fmt.Sprintf("%s.%d", ref.Run, n) {
					t.Errorf("%s: event %s has number %s, want %d", name, ev.ID, ev.Sequence, n)
				}
				if ev.Ref() != ref || !ev.Time.Equal(e.Head.Time) || ev.SpecVersion != "1.0" {
					t.Errorf("%s: %+v is not of %v at %v", name, ev, ref, e.Head.Time)
				}
			}
			if len(events) > 0 && e.Head.Phase == record.PhaseFinished {
				last := events[len(events)-1]
				if last.Name() != messages.EventRunFinished {
					t.Errorf("%s: the last event is %s", name, last.Name())
				}
				end, _ := e.Records[len(e.Records)-1].(*record.Finished)
				noDiff(t, name, last, record.FinishedEvent(ref, &e.Head, end))
			}
		}
	}
}

func TestNoEventFollowsTheEnd(t *testing.T) {
	t.Parallel()
	s := story{t: t}
	s.add(&record.Started{}, &record.Finished{})
	s.add(&record.CancelRequested{ID: "late"})
	if events := record.Events(ref, s.entries[1]); len(events) != 0 {
		t.Errorf("got %d events after run_finished", len(events))
	}
}

func TestEventsDoNotTrustAHead(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 1 << 62} {
		e := record.Entry{Head: record.Head{Events: n, FirstEvent: 1}, Records: []record.Record{&record.StepStarted{Step: 1}}}
		if got := len(record.Events(ref, e)); got != 1 {
			t.Errorf("got %d events, want 1", got)
		}
	}
}

// TestEventsStaySmall makes every text of every record as large as a log can hold it, in characters that JSON writes
// as six bytes where that is worst.
func TestEventsStaySmall(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{"letters": "x", "escapes": "\x01", "runes": "😀", "broken": "\xff", "separators": "\u2028", "delete": "\x7f"} {
		huge := strings.Repeat(unit, 128<<10)
		labels := map[string]string{}
		for i := range 64 {
			labels[fmt.Sprintf("%02d", i)+strings.Repeat("k", 254)] = strings.Repeat("v", 256)
		}
		tools := make([]string, 256)
		for i := range tools {
			tools[i] = fmt.Sprintf("%064d", i)
		}
		task := fullTask()
		task.Labels, task.Input = labels, messages.TextInput(huge)
		agent := fullDefinition()
		agent.Tools, agent.Model = tools, strings.Repeat("m", 256)
		call := messages.ToolCall{ID: huge, Name: huge, Arguments: huge}
		content := []messages.Block{{Text: huge}, {Text: huge}, {Reasoning: &messages.Reasoning{Text: huge}}}
		for range 100 {
			content = append(content, messages.Block{ToolCall: &call})
		}
		result := fullResult()
		result.Result, result.Error.Message, result.Error.Info = huge, huge, huge
		result.Metrics.ToolLatencyMs = map[string]int64{huge: 1}
		result.Summary, result.Output, result.Provenance.Models = huge, json.RawMessage(`"`+strings.Repeat("x", 100_000)+`"`), []string{huge}
		result.Provenance.Memories = []messages.MemoryUsed{{Document: huge}}
		result.MemoryDeltas = slices.Repeat([]messages.MemoryChange{{Name: huge, Text: huge}}, 20)
		free := fullResult()
		free.Result = []any{huge}
		for _, r := range []record.Record{
			&record.Started{Task: task, Agent: agent},
			&record.Claimed{Resumes: huge},
			&record.ModelReplied{Message: messages.Message{Role: messages.RoleAssistant, Content: content}, Provider: huge, Model: huge},
			&record.ModelFailed{Error: messages.RunError{Message: huge, Info: huge}},
			&record.ToolStarted{Call: call},
			&record.ToolReturned{Name: huge, Result: messages.ToolResult{CallID: huge, Content: content}},
			&record.ToolReturned{Result: messages.ToolResult{Content: []messages.Block{
				{Text: huge}, {Image: &messages.Image{MediaType: huge, Data: []byte(huge)}},
			}}},
			&record.Parked{Reason: huge, Call: huge},
			&record.CancelRequested{By: huge, Reason: huge},
			&record.MemoryWritten{StepID: huge, Call: huge, Changes: slices.Repeat([]messages.MemoryChange{{Name: huge, ID: huge, Text: huge}}, 200)},
			&record.MemoryRecalled{Error: huge, Degraded: huge, Memories: slices.Repeat([]record.Memory{{
				MemoryUsed: messages.MemoryUsed{ID: huge, Collection: huge, Run: huge, Document: huge}, Text: huge,
			}}, 50)},
			&record.Finished{Result: result},
			&record.Finished{Result: free},
		} {
			h := record.Follow(record.Head{}, r)
			for _, e := range record.Events(ref, record.Entry{Head: h, Records: []record.Record{r}}) {
				b, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				if len(b) > messages.MaxPayload {
					t.Errorf("%s: %s is %d bytes", name, e.Name(), len(b))
				}
			}
		}
	}
}

func TestEventTextIsCutBetweenRunes(t *testing.T) {
	t.Parallel()
	for shift := range 4 {
		text := strings.Repeat("x", shift) + strings.Repeat("😀", 8<<10)
		r := &record.ModelReplied{Message: messages.Message{Content: messages.TextContent(text)}}
		h := record.Follow(record.Head{}, r)
		var got messages.MessageEnd
		decode(t, record.Events(ref, record.Entry{Head: h, Records: []record.Record{r}})[0].Data, &got)
		kept, more, ok := strings.Cut(got.Text, "… (")
		if !ok || !got.Truncated || !strings.HasPrefix(text, kept) || len(kept) > 8<<10 || len(kept) < 8<<10-3 {
			t.Errorf("%d: kept %d bytes and %q, truncated %v", shift, len(kept), more, got.Truncated)
		}
		if want := fmt.Sprintf("%d more bytes)", len(text)-len(kept)); more != want {
			t.Errorf("%d: it says %q, want %q", shift, more, want)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		n    int
		want string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc… (1 more bytes)"},
		{"aä", 2, "a… (2 more bytes)"},
		{"😀😀", 7, "😀… (4 more bytes)"},
		{"😀", 0, "… (4 more bytes)"},
		{"\x80\x80", 1, "… (2 more bytes)"},
	} {
		if diff := cmp.Diff(tc.want, strict.Clip(tc.in, tc.n)); diff != "" || !utf8.ValidString(tc.want) {
			t.Errorf("%q: %s", tc.in, diff)
		}
	}
}

func TestEventOfFinishedHidesWhatOnlyTheOwnerMaySee(t *testing.T) {
	t.Parallel()
	r := &record.Finished{Result: fullResult()}
	before := fullResult()
	h := record.Follow(record.Head{}, r)
	events := record.Events(ref, record.Entry{Head: h, Records: []record.Record{r}})
	var got messages.RunFinished
	decode(t, events[1].Data, &got)
	want := fullResult()
	want.Actions, want.ModelCalls, want.RetryInfo, want.Error.Info, want.Truncated = nil, nil, nil, nil, true
	want.Attachments, want.Diagnostics, want.Transcript = nil, nil, nil
	want.Files.List = nil
	noDiff(t, "result", want, got.Result)
	noDiff(t, "the record", before, r.Result)
}

func TestEventThatIsNotOurs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		event  messages.Event
		name   string
		number uint64
		ref    messages.Ref
	}{
		{messages.Event{}, "", 0, messages.Ref{}},
		{messages.Event{Type: "longshore.v1", Sequence: "-1", Source: "/tenants"}, "longshore.v1", 0, messages.Ref{}},
		{messages.Event{Type: "x.y.z", Sequence: "1e3", Source: "/TENANTS/acme", Subject: "r"}, "x.y.z", 0, messages.Ref{Run: "r"}},
		{messages.Event{Type: "longshore.step_end.v1", Sequence: "12", Source: "/tenants/a", Subject: "r"}, "step_end", 12, messages.Ref{Tenant: "a", Run: "r"}},
	} {
		if e := tc.event; e.Name() != tc.name || e.Number() != tc.number || e.Ref() != tc.ref {
			t.Errorf("%+v: %q, %d, %v", e, e.Name(), e.Number(), e.Ref())
		}
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	if !messages.CodeModelTimeout.Retryable() || messages.CodeModelAuth.Retryable() || messages.Code("nope").Retryable() {
		t.Error("retryable codes are mixed up")
	}
}

func decode(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := strict.Decode(data, v); err != nil {
		t.Fatal(err)
	}
}
