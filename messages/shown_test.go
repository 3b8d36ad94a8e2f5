package messages_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// private is what no event of a run with the default rules shows.
const private = "bob@example.com"

// privateRecords are one of each kind that has a text of others, with an address in all of them.
func privateRecords() []record.Record {
	call := messages.ToolCall{ID: "c1", Name: "mail", Arguments: `{"to":"` + private + `","card":4111111111111111}`}
	text := messages.TextContent("write to " + private)
	return []record.Record{
		&record.Started{Task: messages.Task{Agent: "a", Input: messages.Input(text)}, Agent: messages.Definition{Name: "a"}},
		&record.ModelReplied{Step: 1, Message: messages.Message{Role: messages.RoleAssistant, Content: append([]messages.Block{
			{Reasoning: &messages.Reasoning{Text: "it is " + private}}, {ToolCall: &call},
		}, text...)}},
		&record.ModelReplied{Step: 1, Message: messages.Message{Content: []messages.Block{{Text: "write to bob@"}, {Text: "example.com"}}}},
		&record.ModelFailed{Step: 1, Error: messages.RunError{Message: private}},
		&record.ToolStarted{Step: 1, Call: call},
		&record.ToolReturned{Step: 1, Name: "mail", Result: messages.ToolResult{CallID: "c1", Content: text}, Meta: json.RawMessage(`{"sent":["` + private + `"],"n":4111111111111111}`)},
		&record.StepEnded{Step: 1, Status: messages.StepFailed, Reason: private},
		&record.Planned{Reason: private, Plan: &messages.Plan{Steps: []messages.PlanStep{{ID: "s", Description: private, Tool: "mail", Args: json.RawMessage(call.Arguments)}}}},
		&record.Parked{Reason: "approval", Question: private, Cause: &messages.Cause{Message: private}, Approval: messages.NewApproval("a", 1, "", call)},
		&record.HookFailed{Reason: private},
		&record.PolicyApplied{Reason: private},
		&record.MemoryWritten{Step: 1, Call: "c1", Changes: []messages.MemoryChange{{Memory: "scratchpad", Op: "append", Name: "todo", Text: private}}},
		&record.MemoryRecalled{Error: private, Memories: []record.Memory{{MemoryUsed: messages.MemoryUsed{ID: "m", Document: private}, Text: "write to " + private}}},
		&record.MemoryWritten{Learned: true, Changes: []messages.MemoryChange{{Memory: "long-term", Op: "write", Name: "examples", Text: private}}},
		&record.CancelRequested{Reason: private},
		&record.Decided{Reason: private},
		&record.Steered{Message: strings.Repeat("-", messages.MaxEventText-8) + " " + private}, // where it is cut
		&record.Finished{Result: messages.AgentResult{
			ID: "r", Result: private, Output: json.RawMessage(`{"to":"` + private + `","n":4111111111111111}`), Summary: private, Error: &messages.RunError{Message: private},
			Provenance: &messages.Provenance{Agent: "a", Memories: []messages.MemoryUsed{{ID: "m", Document: private}}},
		}},
	}
}

func eventData(t *testing.T, shown *record.Shown, r record.Record) (all []string) {
	t.Helper()
	h := record.Follow(record.Head{Shown: shown}, r)
	h.Shown = shown
	before := string(encode(t, r))
	for _, e := range record.Events(ref, record.Entry{Head: h, Records: []record.Record{r}}) {
		if !json.Valid(e.Data) {
			t.Errorf("%s: %s", e.Name(), e.Data)
		}
		all = append(all, e.Name()+" "+string(e.Data))
	}
	if end, ok := r.(*record.Finished); ok {
		all = append(all, string(record.FinishedEvent(ref, &h, end).Data))
	}
	if string(encode(t, r)) != before {
		t.Errorf("%s was changed", r.Kind())
	}
	return all
}

// Events show no personal data unless the run's log says that they may. Logs of before say nothing, and their events stay as they
// were.
func TestEventsShowNoPersonalData(t *testing.T) {
	t.Parallel()
	for _, r := range privateRecords() {
		leaks := false
		for _, data := range eventData(t, nil, r) {
			leaks = leaks || strings.Contains(data, "bob@") || strings.Contains(data, "4111111111111111")
		}
		if !leaks {
			t.Errorf("%s: the event of an old log lacks what it had", r.Kind())
		}
		for _, data := range eventData(t, record.ShownByDefault(), r) {
			if strings.Contains(data, "bob") || strings.Contains(data, "4111111111111111") {
				t.Errorf("%s shows it: %s", r.Kind(), data)
			}
		}
	}
}

// No kind of record, also none that is added later, shows personal data in a field that holds a text of others by its name.
func TestEventsOfEveryKindShowNoPersonalData(t *testing.T) {
	t.Parallel()
	for _, r := range fullRecords() {
		if writeTexts(reflect.ValueOf(r), "write to bob@harbour.example") == 0 {
			continue
		}
		if parked, ok := r.(*record.Parked); ok {
			parked.Reason = "answer" // which is one of a few words
		}
		for _, data := range eventData(t, record.ShownByDefault(), r) {
			if strings.Contains(data, "bob") {
				t.Errorf("%s shows it: %s", r.Kind(), data)
			}
		}
	}
}

// writeTexts sets all fields within v that hold a text of others by their name, and returns how many.
func writeTexts(v reflect.Value, text string) (n int) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			n = writeTexts(v.Elem(), text)
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += writeTexts(v.Index(i), text)
		}
	case reflect.Struct:
		for f, value := range v.Fields() {
			switch f.Name {
			case "Message", "Reason", "Text", "Question", "Output", "Summary", "Note", "Comment", "Result", "Title":
				if value.Kind() == reflect.String && value.CanSet() {
					value.SetString(text)
					n++
					continue
				}
			}
			n += writeTexts(value, text)
		}
	default: // holds nothing else
	}
	return n
}

func TestEventsWithoutInputsAndOutputs(t *testing.T) {
	t.Parallel()
	shown := &record.Shown{NoInputs: true, NoOutputs: true}
	for _, r := range privateRecords() {
		for _, data := range eventData(t, shown, r) {
			switch r.(type) {
			case *record.ToolStarted, *record.ToolReturned:
				if strings.Contains(data, "bob") || strings.Contains(data, "4111") {
					t.Errorf("%s shows it: %s", r.Kind(), data)
				}
			case *record.ModelReplied, *record.Planned, *record.Parked:
				if strings.Contains(data, "4111") {
					t.Errorf("%s shows arguments: %s", r.Kind(), data)
				}
			}
		}
	}
	for _, data := range eventData(t, &record.Shown{NoReplies: true}, privateRecords()[1]) {
		if strings.Contains(data, "write to") || strings.Contains(data, "it is") {
			t.Errorf("the text of a reply is shown: %s", data)
		}
	}
}

// What it costs to look through the records of a step without anything to take out.
func BenchmarkEventsOfAStep(b *testing.B) {
	text := strings.Repeat("The agent wrote 12 files to build/output_directory and read config.yaml. ", 14)
	call := messages.ToolCall{ID: "c1", Name: "write_file", Arguments: `{"filePath":"a.go","content":"` + text + `"}`}
	records := []record.Record{
		&record.StepStarted{Step: 1},
		&record.ModelReplied{Step: 1, Message: messages.Message{Role: messages.RoleAssistant, Content: []messages.Block{{Text: text}, {ToolCall: &call}}}},
		&record.ToolStarted{Step: 1, Call: call},
		&record.ToolReturned{Step: 1, Name: "write_file", Result: messages.ToolResult{CallID: "c1", Content: messages.TextContent(text)}},
		&record.StepEnded{Step: 1, Status: messages.StepCompleted},
	}
	for name, shown := range map[string]*record.Shown{"all": nil, "redacted": record.ShownByDefault()} {
		b.Run(name, func(b *testing.B) {
			e := record.Entry{Head: record.Follow(record.Head{Shown: shown, FirstEvent: 1}, records...), Records: records}
			b.ReportAllocs()
			for b.Loop() {
				record.Events(ref, e)
			}
		})
	}
}

// What is shown is part of the log: every later entry, whichever process appends it, has it.
func TestHeadsKeepWhatIsShown(t *testing.T) {
	t.Parallel()
	h := record.Follow(record.Head{}, &record.Started{Shown: &record.Shown{NoInputs: true}})
	h = record.Follow(h, &record.CancelRequested{})
	if h.Shown == nil || !h.Shown.NoInputs {
		t.Errorf("%+v", h.Shown)
	}
}
