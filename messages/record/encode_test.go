package record_test

import (
	"encoding/json"
	"testing"
	"testing/quick"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// What is written by hand is what encoding/json would write.
func TestHandWrittenJSON(t *testing.T) {
	t.Parallel()
	head := func(id, claim, waits string, kinds []string, n [5]uint32, attempt uint16, cancel bool, ms int64) bool {
		h := record.Head{
			ID: id, Version: 1, Time: time.UnixMilli((ms%1e14 + 1e14) / 2).UTC(), Phase: record.PhaseActive, Claim: claim, Waits: waits, Status: messages.Status(waits),
			Ticket: uint64(n[0]), ClaimSeq: uint64(n[1]), ParkSeq: uint64(n[2]), FirstEvent: uint64(n[3]), EventsThrough: uint64(n[4]),
			Attempt: int(attempt), Delivery: int(attempt), Events: int(attempt % 7), Cancel: cancel, Kinds: []record.Kind{},
		}
		if cancel {
			h.Needs = &messages.Needs{Tools: kinds, Labels: messages.Labels{id: claim}, Pinned: ms%2 == 0}
		}
		for _, k := range kinds {
			h.Kinds = append(h.Kinds, record.Kind(k))
		}
		want, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		got, err := record.EncodeHead(&h)
		return err == nil && got == string(want)
	}
	if err := quick.Check(head, nil); err != nil {
		t.Error(err)
	}
	event := func(id, source, typ, trace string, data string, ms int64) bool {
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		e := messages.Event{
			SpecVersion: "1.0", ID: id, Source: source, Type: typ, Traceparent: trace, Sequence: "7", Subject: id,
			Time: time.UnixMilli((ms%1e14 + 1e14) / 2).UTC(), DataContentType: "application/json", Data: raw,
		}
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(record.AppendEvent(nil, &e)) == string(want)
	}
	if err := quick.Check(event, nil); err != nil {
		t.Error(err)
	}
	var raw messages.Event
	data := func(text, name string, calls []string, u messages.Usage, millis int64, flags [2]bool, cost *float64) bool {
		e := record.Entry{Head: record.Head{FirstEvent: 1, Events: 4}, Records: []record.Record{
			&record.ToolStarted{Step: 3, Call: messages.ToolCall{ID: name, Name: text, Arguments: text}},
			&record.ToolReturned{Step: 4, Name: name, Millis: millis, Code: messages.Code(name), Result: messages.ToolResult{
				CallID: text, IsError: flags[0], Content: messages.TextContent(text),
			}},
			&record.StepEnded{Step: 5, Status: messages.StepStatus(name)},
		}}
		msg := messages.Message{Role: messages.Role(name), Content: messages.TextContent(text)}
		if flags[1] {
			msg.Content = append(msg.Content, messages.Block{Reasoning: &messages.Reasoning{Text: text}})
		}
		for _, c := range calls {
			msg.Content = append(msg.Content, messages.Block{ToolCall: &messages.ToolCall{ID: c, Name: c, Arguments: c}})
		}
		e.Records = append(e.Records, &record.ModelReplied{Message: msg, Usage: u, Millis: millis, Model: name, Stop: messages.StopReason(text), Cached: flags[0], Cost: cost, FirstTokenMillis: millis})
		for _, ev := range record.Events(messages.Ref{Tenant: "t", Run: "r"}, e) {
			var back any
			switch ev.Name() {
			case messages.EventStepEnd:
				back = &messages.Step{}
			case messages.EventMessageEnd:
				back = &messages.MessageEnd{}
			default:
				back = &messages.ToolExecution{}
			}
			if err := json.Unmarshal(ev.Data, back); err != nil {
				t.Errorf("%s: %v", ev.Data, err)
				return false
			}
			if want, err := json.Marshal(back); err != nil || string(want) != string(ev.Data) {
				t.Errorf("%s\n%s", ev.Data, want)
				return false
			}
			raw = ev
		}
		return raw.ID != ""
	}
	if err := quick.Check(data, nil); err != nil {
		t.Error(err)
	}
}

// Records written by hand are what encoding/json would write, for every kind, full and empty.
func TestHandWrittenRecords(t *testing.T) {
	t.Parallel()
	check := func(r record.Record) bool {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		kind, _ := json.Marshal(r.Kind())
		want := `[{"kind":` + string(kind) + `,"data":` + string(data) + `}]`
		got, err := record.EncodeRecords([]record.Record{r})
		if err != nil || string(got) != want {
			t.Errorf("%s\n%s\n%v", got, want, err)
			return false
		}
		return true
	}
	random := func(text, name string, calls []string, u messages.Usage, millis int64, step int, isError, none bool, cost *float64) bool {
		call := messages.ToolCall{ID: name, Name: text, Arguments: text}
		content := []messages.Block{
			{Text: text},
			{},
			{ToolCall: &call},
			{Text: name, ToolResult: &messages.ToolResult{CallID: text, IsError: isError}},
			{Image: &messages.Image{MediaType: name, Data: []byte(text)}},
			{Text: text, Reasoning: &messages.Reasoning{Family: name, Text: text, Opaque: text}},
		}
		for _, c := range calls {
			content = append(content, messages.Block{ToolCall: &messages.ToolCall{ID: c, Name: c, Arguments: c}})
		}
		if none {
			content = nil
		}
		return check(&record.Claimed{Claim: name, Worker: text, Ticket: uint64(step), Delivery: step % 3, Resumes: name}) &&
			check(&record.StepStarted{Step: step}) && check(&record.StepEnded{Step: step, Status: messages.StepStatus(name)}) &&
			check(&record.ToolStarted{Step: step, Call: call}) &&
			check(&record.ToolReturned{Step: step, Name: name, Millis: millis, Code: messages.Code(name), Result: messages.ToolResult{
				CallID: text, Content: content, IsError: isError,
			}}) &&
			check(&record.ModelReplied{
				Step: step, Message: messages.Message{Role: messages.Role(text), Content: content}, Usage: u,
				Stop: messages.StopReason(name), Provider: name, Model: text, Millis: millis, Cached: isError, Cost: cost, FirstTokenMillis: millis,
			})
	}
	if err := quick.Check(random, nil); err != nil {
		t.Error(err)
	}
	ended := func(
		text, name string, actions []messages.ActionResult, calls []messages.ModelCall, u messages.Usage, millis map[string]int64,
		n int32, flag bool, cost *float64, outputs []string, seed *int64,
	) bool {
		for i := range actions {
			actions[i].Meta = nil
			if flag {
				actions[i].Meta = json.RawMessage(`{"a":[1,2]}`)
			}
		}
		r := messages.AgentResult{
			ID: name, Success: flag, Result: text, StartedAt: time.UnixMilli(int64(n)).UTC(), FinishedAt: time.Unix(int64(n), 7).UTC(),
			Status: messages.Status(name), SessionID: text, Steps: int(n), Actions: actions, ModelCalls: calls, TokenUsage: u,
			CostEstimate: cost, Summary: text, Outputs: outputs, Logs: name, EventStream: text, Aborted: flag,
			Provenance: &messages.Provenance{
				Agent: text, Revision: uint64(u.Input), Planner: name, Models: outputs, Prompts: []messages.PromptUsed{{ID: name, Version: 7}},
				Memories: []messages.MemoryUsed{{ID: name, Collection: text, Score: 0.5, Part: int(n), Created: time.UnixMilli(int64(n)).UTC()}},
			},
			Output: json.RawMessage(`{"a":1}`), Attachments: map[string]string{name: text}, Deterministic: flag,
			Files:       &messages.ResultFiles{Step: int(n), Manifest: text, Count: int(n), Bytes: int64(n), List: []messages.SavedFile{{Name: name, Type: text, Exec: flag}}},
			Diagnostics: &messages.Diagnostics{Warnings: outputs, Traces: outputs}, RetryInfo: &messages.RetryInfo{Attempts: int(n), LastError: text},
			Metrics: &messages.Metrics{DurationMs: int64(n), ToolLatencyMs: millis}, Seed: seed, Cut: text, Truncated: flag,
			Error: &messages.RunError{Code: messages.Code(name), Message: text},
		}
		bare := messages.AgentResult{Result: map[string]any{name: text}, Metrics: &messages.Metrics{}}
		return check(&record.Finished{Result: r, Dead: flag}) && check(&record.Finished{Result: bare})
	}
	if err := quick.Check(ended, nil); err != nil {
		t.Error(err)
	}
	for _, r := range []record.Record{
		&record.Claimed{}, &record.StepStarted{}, &record.ModelReplied{}, &record.ToolStarted{}, &record.ToolReturned{},
		&record.StepEnded{}, &record.Parked{}, &record.Finished{},
	} {
		check(r)
	}
}
