package messages_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/messages/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// wire is one value of every type that travels, by the name of its golden file.
func wire() map[string]any {
	until := noon
	task := fullTask()
	minimal := messages.Task{Input: messages.TextInput("do it")}
	head := prior(record.PhaseActive)
	head.Cancel, head.Snapshot, head.Status = true, 3, messages.StatusCompleted
	head.Session, head.Turn, head.Webhook = "s-1", true, true
	head.Semaphores = []string{"key.acme.deploy", "tenant.acme"}
	head.Needs = fullNeeds()
	head.Trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	usage := fullUsage()
	result, done := fullResult(), messages.AgentResult{
		ID: ref.Run, Success: true, Result: "done", StartedAt: noon, FinishedAt: noon, Status: messages.StatusCompleted,
		Steps: 1, TokenUsage: messages.Usage{Input: 1, Output: 1, Total: 2},
	}
	definition, several := fullDefinition(), fullDefinition()
	several.Model, several.Models, several.MaxPrice = "", []string{"openai/gpt-4o", "local/llama"}, new(2.5)
	several.Planner, several.Plan, several.OutputSchema = messages.PlannerJSON, nil, json.RawMessage(`{"type":"object"}`)
	shaped := minimal
	shaped.OutputSchema = json.RawMessage(`{"type":"object","required":["n"]}`)
	given, folder := minimal, minimal
	given.Files = []messages.TaskFile{
		{Path: "notes/a.txt", Text: new("hi\n")},
		{Path: "empty.txt", Text: new("")},
		{Path: "bin/tool", Data: []byte{0, 1}, Exec: true},
		{Path: "data.csv", Hash: someHash, Size: 4},
	}
	folder.Manifest = someHash
	tried, shown := head, first()
	tried.Alone = true
	shown.Shown = fullShown()
	short := done
	short.Summary, short.Outputs = "A haiku was written.", []string{"haiku.txt"}
	taskResult := control.NewTaskResult(&short, []logentry.LogEntry{*fullLogEntry()})
	taskResult.LogsLeftOut = 2
	all := map[string]any{
		"task":              &task,
		"task_minimal":      &minimal,
		"task_shaped":       &shaped,
		"task_files":        &given,
		"task_manifest":     &folder,
		"definition":        &definition,
		"definition_models": &several,
		"head":              &head,
		"head_first":        new(first()),
		"head_kin":          new(kin()),
		"head_earlier":      new(earlier()),
		"head_quarantine":   &tried,
		"head_workspace":    new(inWorkspace()),
		"head_shown":        &shown,
		"agent_result":      &result,
		"agent_result_done": &done,
		"usage":             &usage,
		"plan":              fullPlan(),
		"task_result":       &taskResult,
		"problem": &messages.Problem{
			RetryAfter: 7,
			Type:       "about:blank", Title: "Invalid input", Status: 400, Detail: "limits.maxSteps: unknown field",
			Code: messages.CodeInvalidInput, Retryable: false, Field: "limits.maxSteps",
		},
		"problem_minimal": &messages.Problem{
			Type: "about:blank", Title: "Internal error", Status: 500, Detail: "try again", Code: messages.CodeInternal, Retryable: true,
		},
		"wake":         &messages.Wake{After: 7},
		"wake_none":    &messages.Wake{},
		"errand":       &messages.Wake{After: 7, Errand: messages.ErrandTimer},
		"errand_learn": &messages.Wake{Errand: messages.ErrandLearn, Rating: &messages.Rating{At: noon, Score: -1, Step: "fetch", Note: "The wrong one."}},
		"dead": &messages.Dead{
			Error:   messages.RunError{Message: "task: is empty", Code: messages.CodeInvalidInput},
			Subject: ref.TaskSubject(messages.PriorityLow), Task: []byte{0, 0xff}, Attempts: 3, Time: noon,
		},
		"run_status": &control.RunStatus{
			Tenant: ref.Tenant, ID: ref.Run, Status: messages.StatusWaiting, Attempt: 1, Updated: noon, Waits: "approval", WaitsFor: "no worker has the tool berth_price", Cancel: true, Sequence: 12, NotBefore: &noon,
			Until: &noon, Cause: fullCause(), Delegations: 2,
			Ignored: true, Webhook: &control.WebhookState{State: control.WebhookDead, Attempts: 3, LastError: "it answered 500", At: &noon},
		},
		"schedule": fullSchedule(),
		"schedule_every": &control.Schedule{
			Name: "often", Tenant: ref.Tenant, Every: messages.Duration(time.Hour), Task: fullSchedule().Task, CatchUp: control.CatchUpNone,
			Overlap: control.OverlapReplace,
		},
		"schedule_due":     &control.Due{ScheduleRef: fullSchedule().Ref(), Timing: fullSchedule().Timing(), At: noon},
		"schedule_put":     &control.SchedulePut{Tenant: "acme", Schedule: *fullSchedule(), IfRevision: new(uint64(3)), By: "ann"},
		"schedule_applied": &control.ScheduleApplied{Name: "nightly", Revision: 4, Changed: true, Next: []time.Time{noon}},
		"schedule_request": &control.ScheduleRequest{ScheduleRef: fullSchedule().Ref(), By: "ann"},
		"schedule_run":     &control.ScheduleRun{ScheduleRef: fullSchedule().Ref(), ID: ref.Run},
		"schedule_status": &control.ScheduleStatus{
			Schedule: *fullSchedule(), Next: []time.Time{noon},
			Last:    &control.ScheduleState{Run: ref.Run, At: noon, Outcome: control.OutcomeSkipped, Reason: "run r1 goes on"},
			Skipped: []control.Skipped{{At: noon, Last: new(noon.Add(time.Hour)), Count: 2, Reason: "no dispatcher took it in time"}},
		},
		"skipped":        &control.Skipped{At: noon, Last: new(noon.Add(time.Hour)), Count: 2, Reason: "run r1 goes on"},
		"schedule_state": &control.ScheduleState{Run: ref.Run, At: noon, Outcome: control.OutcomeFailed, Reason: "agent: is unknown"},
		"schedule_list":  &control.ScheduleList{Schedules: []control.ScheduleSummary{{Name: "nightly", Cron: "0 3 * * *", TimeZone: "UTC", Agent: "reviewer", Next: &noon}}},
		"schedule_summary": &control.ScheduleSummary{
			Name: "nightly", Cron: "0 3 * * *", TimeZone: "UTC", Every: messages.Duration(time.Hour), Agent: "reviewer", Paused: true, Next: &noon,
			Last: &control.ScheduleState{At: noon, Outcome: control.OutcomeSubmitted},
		},
		"submit_reply":           &control.SubmitReply{ID: ref.Run},
		"submit_reply_duplicate": &control.SubmitReply{ID: ref.Run, Duplicate: true},
		"run_request":            &control.RunRequest{Tenant: ref.Tenant, ID: ref.Run},
		"result_request":         &control.ResultRequest{Tenant: ref.Tenant, ID: ref.Run, Transcript: true, After: "17.1", Format: control.FormatTaskResult},
		"result_request_wait":    &control.ResultRequest{Tenant: ref.Tenant, ID: ref.Run, Wait: messages.Duration(control.MaxResultWait)},
		"verify_request":         &control.VerifyRequest{Tenant: ref.Tenant, ID: ref.Run, Fingerprint: strings.Repeat("0f", 32)},
		"cancel_request":         &control.CancelRequest{Tenant: ref.Tenant, ID: ref.Run, Reason: "too slow", By: "ann"},
		"live": &messages.Live{
			Type: messages.TypeLive, Run: ref.Run, Step: 2, Attempt: 1, Try: 2, N: 9, Dropped: 120, Kind: messages.LiveText, Text: "Let me ",
		},
		"hook_call": &messages.HookCall{
			ID: "acme.r.1.pre_tool.c1", On: messages.HookPreTool, Time: noon, Tenant: ref.Tenant, Run: ref.Run, Agent: "reviewer", Step: 1, Attempt: 1,
			Tool:  &messages.ToolCall{ID: "c1", Name: "read_file", Arguments: `{"path":"a.go"}`},
			Input: "Tell me", Output: "not found", IsError: true, Code: messages.CodeToolFailed, Error: &messages.RunError{Message: "no", Code: messages.CodePolicy},
			Result: &done, Kind: messages.LiveText, Text: "Let me ", Dropped: 3,
		},
		"hook_answer": &messages.HookAnswer{Decision: messages.HookDeny, Reason: "not on a Friday"},
		"decision_request": &control.DecisionRequest{
			Tenant: ref.Tenant, ID: ref.Run, Call: "c1", Hash: messages.HashArguments(""), By: "ann", Reason: "fine", Control: "x1",
			Arguments: json.RawMessage(`{"path":"y"}`),
		},
		"answer_request":    &control.AnswerRequest{Tenant: ref.Tenant, ID: ref.Run, Call: "c1", Text: "blue", Deny: true, By: "ann", Control: "x1"},
		"approvals_request": &control.ApprovalsRequest{Tenant: ref.Tenant, Limit: 10},
		"approval_list": &control.ApprovalList{More: true, Approvals: []control.WaitingApproval{{
			Tenant: ref.Tenant, ID: ref.Run, Agent: "reviewer", Step: 1, Call: "c1", Tool: "send_mail", Arguments: `{}`,
			Hash: messages.HashArguments(`{}`), Since: noon, Until: &until, Editable: true,
		}}},
		"feedback_request": &control.FeedbackRequest{
			Tenant: ref.Tenant, ID: ref.Run, Score: new(-0.5), Comment: "Too long.", Labels: map[string]string{"kind": "style"}, Step: 2,
			By: "ann", Control: "f1",
		},
		"feedback_request_plan": &control.FeedbackRequest{Tenant: ref.Tenant, ID: ref.Run, Score: new(1.0), StepID: "fetch"},
		"feedback_plan":         &control.Feedback{Run: ref.Run, ID: "f2", At: noon, Score: new(1.0), StepID: "fetch", By: "ann", Memory: &messages.MemoryChange{Memory: messages.MemoryLongTerm, Op: messages.MemoryWrite, Name: "examples", ID: "e1"}},
		"feedback":              fullFeedback(), "feedback_list": &control.FeedbackList{Feedback: []control.Feedback{*fullFeedback()}, More: true},
		"steer_request": &control.SteerRequest{Tenant: ref.Tenant, ID: ref.Run, Message: "Skip b.go.", By: "ann", Control: "x4"},
		"live_call": &messages.Live{
			Type: messages.TypeLive, Run: ref.Run, Step: 2, Attempt: 1, Try: 1, N: 9, Kind: messages.LiveCall, Text: `{"path":`, CallID: "c1", Tool: "read_file",
		},
		"live_reset": &messages.Live{Type: messages.TypeLive, Run: ref.Run, Step: 2, Attempt: 1, Try: 2, N: 8, Kind: messages.LiveReset},
		"log_entry":  fullLogEntry(),
		"log_entry_list": &logentry.LogEntryList{
			Entries: []logentry.StoredLogEntry{{Seq: 12, LogEntry: *fullLogEntry()}}, Next: 12,
		},
		"webhook_job": new(messages.RunWebhook(ref, "https://hooks.example.com/ends", []byte(`{}`))),
	}
	for name, data := range map[string]any{
		messages.EventRunQueued: messages.RunQueued{
			Agent: "reviewer", Priority: messages.PriorityHigh, Session: "s-1", Labels: map[string]string{"team": "core"},
			Input: "Tell me", QueuedAt: noon, By: "ann", Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		},
		messages.EventRunStarted: messages.RunStarted{
			Agent: "reviewer", Revision: 4, Model: "openai/gpt-4o", Models: []string{"openai/gpt-4o"}, Tools: []string{"read_file"}, MaxSteps: 10, Planner: messages.PlannerJSON,
			ForkedFrom: &messages.Origin{Run: "run-0", Seq: 9, Step: 2}, Parent: &messages.ParentRef{Run: "run-0", CallID: "c1"},
		},
		messages.EventStepStart: messages.Step{StepID: "step-1", Step: 1},
		messages.EventMessageEnd: messages.MessageEnd{
			StepID: "step-1", Role: messages.RoleAssistant, Text: "Let me look.", Reasoning: "A file.",
			ToolCalls: []messages.ToolCall{{ID: "c1", Name: "read_file", Arguments: `{"path":"a.go"}`}},
			Stop:      messages.StopToolCalls, Usage: usage, Provider: "openai", Model: "gpt-4o", Millis: 900, Truncated: true, Cached: true,
			Cost: new(0.0125), FirstTokenMillis: 120,
		},
		messages.EventToolExecutionStart: messages.ToolExecution{
			StepID: "step-1", CallID: "c1", ToolName: "read_file", Arguments: `{"path":"a.go"}`,
		},
		messages.EventToolExecutionEnd: messages.ToolExecution{
			StepID: "step-1", CallID: "c1", ToolName: "read_file", Result: "not found", IsError: true,
			Code: messages.CodeToolFailed, Millis: 3, Truncated: true, Meta: json.RawMessage(`{"bytes":9}`),
		},
		messages.EventStepEnd:         messages.Step{StepID: "step-1", Step: 1, Status: messages.StepCompleted, Reason: "no such file"},
		messages.EventRunWaiting:      messages.RunWaiting{Reason: "approval", CallID: "c1", Until: &until, Limit: messages.CapTokens, Question: "May it?", Cause: fullCause()},
		messages.EventRunResumed:      messages.RunWaiting{Reason: "approval"},
		messages.EventCancelRequested: messages.CancelAsked{By: "ann", Reason: "too slow"},
		messages.EventError: messages.ErrorData{
			StepID: "step-1", Message: "busy", Code: messages.CodeModelOverloaded, Retryable: true, Fallback: record.FallbackPark, Provider: "openai/gpt-4o",
		},
		messages.EventPlan: record.PlanData{
			Decision: record.DecisionAdapt, Reason: "b failed", Fallback: true, Truncated: true,
			Steps: []record.PlanItem{{
				ID: "b", Description: "Read b.go.", Tool: "read_file", DependsOn: []string{"a"}, Critical: true, EstimatedDuration: 1.5,
				Args: json.RawMessage(`{"path":"b.go"}`), RequiredApprovals: []string{"ops"},
			}},
			RequiredApprovals: []string{"b"}, EstimatedDuration: 2.5,
		},
		messages.EventTurnEnd: messages.TurnEnd{Steps: 2, Usage: usage, Cost: new(0.0125)},
		"batch_finished": messages.BatchFinished{
			BatchRef: messages.BatchRef{Tenant: ref.Tenant, ID: "b-1"}, Name: "nightly", Status: messages.BatchCancelled, Reason: "budget",
			Counts: messages.BatchCounts{Total: 3, Submitted: 2, Completed: 1, Failed: 1, Cancelled: 1}, Usage: usage,
			Cost: 0.5, Unpriced: 1, Created: noon, Ended: &until,
		},
		messages.EventRunFinished: messages.RunFinished{Result: done, Webhook: true},

		messages.EventPolicyViolation: messages.PolicyViolation{
			Point: messages.PolicyPlan, Action: messages.PolicyBlock, Rule: "tools.deny", Source: "fleet", StepID: "step-1", ToolName: "shell",
			CallID: "c1", Reason: "the tool shell is not allowed (rule tools.deny of the fleet)",
		},
		messages.EventMemoryWrite: messages.MemoryWritten{StepID: "step-1", CallID: "c1", Changes: fullMemoryChanges(), More: 1},
		messages.EventMemoryRecalled: messages.MemoryRecalled{
			Memories: []messages.MemoryShown{{MemoryUsed: memoryUsed(), Text: "The ferry leaves from pier 4."}}, More: 1, LeftOut: 2, Degraded: "vectors",
			Error: "it did not answer in time", Fatal: true, Millis: 12,
		},
		messages.EventHookFailed: messages.HookFailure{
			On: messages.HookPreTool, Hook: "https://hooks.example.com/a", StepID: "step-1", CallID: "c1", Reason: "answered 500", Fatal: true,
		},
		messages.EventApprovalRequested: messages.ApprovalRequested{
			StepID: "step-1", Agent: "reviewer", CallID: "c1", ToolName: "send_mail", Arguments: `{"path":"x"}`, Truncated: true,
			Hash: messages.HashArguments(`{"path":"x"}`), Until: &until, Editable: true,
		},
		messages.EventApprovalDecided: messages.ApprovalDecided{CallID: "c1", Decision: messages.Denied, By: "ann", Reason: "not now", Arguments: `{"path":"y"}`, Truncated: true},
		messages.EventDecisionIgnored: messages.DecisionIgnored{Kind: string(record.KindDecided), Reason: "no valid signature"},
		messages.EventBudgetWarning:   messages.BudgetWarning{Limit: messages.CapCost, Spent: 0.4, Allowed: 0.5},
		messages.EventDelegated: messages.DelegatedData{
			CallID: "c1", Step: 1, Number: 1, Need: 1, Children: []messages.ChildRef{{Run: "run-1-a", Agent: "reader", Cost: 0.05, Tokens: 500}},
		},
		messages.EventChildEnded: messages.ChildEndedData{
			Run: "run-1-a", Number: 1, Status: messages.StatusFailed, Output: "package", Truncated: true,
			Error: &messages.RunError{Message: "no answer", Code: messages.CodeModelTimeout}, Cost: new(0.01),
		},
		messages.EventSteered: messages.SteeredData{ID: "x4", By: "ann", Message: "Skip b.go.", Truncated: true},
	} {
		all["event_"+name] = event(name, data)
	}
	return all
}

// eventOf is an Event with its data still open, so that golden files hold both strictly.
type eventOf struct {
	messages.Event

	Data any `json:"data"`
}

func event(name string, data any) *eventOf {
	typed := reflect.New(reflect.TypeOf(data))
	typed.Elem().Set(reflect.ValueOf(data))
	return &eventOf{messages.Event{
		SpecVersion: "1.0", ID: ref.Run + ".7", Source: "/tenants/" + ref.Tenant, Type: "longshore." + name + ".v1",
		Subject: ref.Run, Time: noon, DataContentType: "application/json", Sequence: "7",
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}, typed.Interface()}
}

func fullFeedback() *control.Feedback {
	return &control.Feedback{
		Run: ref.Run, ID: "f1", At: noon, Score: new(-0.5), Comment: "Too long.", Labels: map[string]string{"kind": "style"}, Step: 2, By: "ann",
	}
}

func kin() record.Head {
	h := record.Follow(record.Head{}, &record.Started{Parent: fullParent()}, fullDelegated())
	h.Children.Seq, h.Children.Ended, h.Children.Completed = 12, 3, 1
	h.ID, h.Time = ref.Run, noon
	return h
}

// inWorkspace is a run that has changed the files of a named workspace.
func inWorkspace() record.Head {
	taken, saved := fullFilesSaved(), fullFilesSaved()
	saved.Taken, saved.Step, saved.Manifest = nil, 2, strings.Repeat("b1", 32)
	h := record.Follow(first(), taken, saved)
	h.ID, h.Time = ref.Run, noon
	h.Workspace.Seq = 13
	return h
}

// earlier is a run that delegates again before all children of the first call have ended.
func earlier() record.Head {
	again := fullDelegated()
	again.Number = 2
	before := kin()
	before.Children.Ended = 1
	h := record.Follow(before, again)
	h.Children.Seq = 16
	h.ID, h.Time = ref.Run, noon
	return h
}

func first() record.Head {
	h := record.Follow(record.Head{}, &record.Started{}, &record.Claimed{Claim: "k1", Worker: "w1", Ticket: 7, Delivery: 2})
	h.ID, h.Time = ref.Run, noon
	return h
}

func TestGoldenWire(t *testing.T) {
	t.Parallel()
	all := wire()
	for name, want := range all {
		got := golden(t, name, encode(t, want))
		v := reflect.New(reflect.TypeOf(want).Elem()).Interface()
		if e, ok := want.(*eventOf); ok {
			var whole messages.Event
			decode(t, got, &whole)
			data := reflect.New(reflect.TypeOf(e.Data).Elem()).Interface()
			decode(t, whole.Data, data)
			whole.Data = nil
			v = &eventOf{whole, data}
		} else {
			decode(t, got, v)
		}
		noDiff(t, name, want, v)
	}
	for _, r := range fullRecords() {
		name := "record_" + string(r.Kind())
		b, err := record.EncodeRecords([]record.Record{r})
		if err != nil {
			t.Fatal(err)
		}
		all[name] = r
		got, err := record.DecodeRecords(golden(t, name, b))
		if err != nil {
			t.Fatal(err)
		}
		noDiff(t, name, []record.Record{r}, got)
	}
	task, err := messages.DecodeTask(golden(t, "task", encode(t, all["task"])))
	if err != nil {
		t.Fatal(err)
	}
	noDiff(t, "task", all["task"], any(task))
	wantNoOtherFile(t, all)
}

// TestGoldenEventsAreAll compares the events that records have with those that have a golden file.
func TestGoldenEventsAreAll(t *testing.T) {
	t.Parallel()
	all := wire()
	seen := map[string]bool{}
	for _, r := range fullRecords() {
		h := record.Follow(record.Head{}, r)
		for _, e := range record.Events(ref, record.Entry{Head: h, Records: []record.Record{r}}) {
			seen[e.Name()] = true
			want, ok := all["event_"+e.Name()].(*eventOf)
			if !ok {
				t.Errorf("%s has no golden file", e.Name())
				continue
			}
			decode(t, e.Data, reflect.New(reflect.TypeOf(want.Data).Elem()).Interface())
		}
	}
	if len(seen) != 25 {
		t.Errorf("the records have %d kinds of events, want 25", len(seen))
	}
}

// TestGoldenFilesShowEveryField makes sure that a new field gets into a golden file.
func TestGoldenFilesShowEveryField(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for _, v := range wire() {
		if e, ok := v.(*eventOf); ok {
			v = e.Data
		}
		typed := reflect.ValueOf(v).Elem()
		for f, value := range typed.Fields() {
			if f.Tag.Get("json") == "-" {
				continue
			}
			name := typed.Type().String() + "." + f.Name
			shown[name] = shown[name] || !value.IsZero()
		}
	}
	for name, ok := range shown {
		if !ok {
			t.Errorf("%s is in no golden file", name)
		}
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// golden compares the JSON with its file and returns the file, white space removed.
func golden(t *testing.T, name string, got []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".json")
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, got, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	if *update {
		if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(file), pretty.String()); diff != "" {
		t.Errorf("%s differs; a change of the contract? -update rewrites it (-file +now):\n%s", path, diff)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, file); err != nil {
		t.Fatal(err)
	}
	return compact.Bytes()
}

func wantNoOtherFile(t *testing.T, known map[string]any) {
	t.Helper()
	files, err := filepath.Glob("testdata/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := known[strings.TrimSuffix(filepath.Base(f), ".json")]; !ok {
			t.Errorf("%s is of nothing that travels", f)
		}
	}
	if len(files) != len(known) {
		t.Errorf("%d files for %d values", len(files), len(known))
	}
}
