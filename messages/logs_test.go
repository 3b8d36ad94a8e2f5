package messages_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// agent is written out: the defaults of today are not those of when these logs were written.
func agent() messages.Definition {
	return messages.Definition{
		Name: "reviewer", Revision: 4, Instructions: "Be brief.", Tools: []string{"read_file", "send_mail"},
		Planner: messages.PlannerTools, MaxSteps: 25, MaxTokens: 4096, OnToolError: messages.OnErrorModel,
	}
}

// taskThen is a task as it could be when these logs were written.
func taskThen() messages.Task {
	t := fullTask()
	t.Plan, t.Limits, t.Deadline = nil, &messages.Limits{MaxSteps: 3}, nil
	t.Workspace = ""
	t.Seed = nil
	t.NotBefore = nil
	t.Webhook = nil
	t.Concurrency = nil
	t.Requires = nil
	t.By = ""
	return t
}

func started() *record.Started {
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	return &record.Started{
		Task: taskThen(), Agent: agent(), QueuedAt: noon.Add(-time.Second),
		Tools: []messages.ToolSpec{
			{Name: "read_file", Description: "Reads a file.", InputSchema: schema, Effect: messages.EffectRead},
			{Name: "send_mail", Description: "Sends a mail.", InputSchema: schema, Effect: messages.EffectOnce},
		},
	}
}

func claimed(claim, worker string, ticket uint64) *record.Claimed {
	return &record.Claimed{Claim: claim, Worker: worker, Ticket: ticket, Delivery: 1}
}

func call(id, name, args string) messages.ToolCall {
	return messages.ToolCall{ID: id, Name: name, Arguments: args}
}

func replied(step int, text string, calls ...messages.ToolCall) *record.ModelReplied {
	r := &record.ModelReplied{
		Step: step, Message: messages.Message{Role: messages.RoleAssistant}, Stop: messages.StopEnd,
		Usage:    messages.Usage{Input: int64(100 * step), Output: 20, Total: int64(100*step + 20)},
		Provider: "scripted", Model: "script-1", Millis: 40,
	}
	if text != "" {
		r.Message.Content = messages.TextContent(text)
	}
	for _, c := range calls {
		r.Message.Content = append(r.Message.Content, messages.Block{ToolCall: &c})
		r.Stop = messages.StopToolCalls
	}
	return r
}

func returned(step int, c messages.ToolCall, text string, code messages.Code) *record.ToolReturned {
	r := &record.ToolReturned{
		Step: step, Name: c.Name, Result: messages.ToolResult{CallID: c.ID, Content: messages.TextContent(text)}, Millis: 5,
	}
	if code != "" {
		r.Result.IsError, r.Code, r.Millis = true, code, 0
	}
	return r
}

func stepStarted(n int) *record.StepStarted { return &record.StepStarted{Step: n} }

func stepEnded(n int, s messages.StepStatus) *record.StepEnded {
	return &record.StepEnded{Step: n, Status: s}
}

func finished(steps int, text string, failure *messages.RunError) *record.Finished {
	res := messages.AgentResult{
		ID: ref.Run, Success: failure == nil, Result: text, Error: failure, StartedAt: noon, FinishedAt: noon.Add(time.Minute),
		Status: messages.StatusCompleted, SessionID: "s-1", Steps: steps,
		TokenUsage:  messages.Usage{Input: 300, Output: 40, Total: 340},
		EventStream: ref.EventFilter(), Provenance: &messages.Provenance{Agent: "reviewer", Revision: 4},
		Metrics: &messages.Metrics{DurationMs: 60_000},
	}
	if failure != nil {
		res.Status = messages.StatusFailed
		if failure.Code == messages.CodeCancelled {
			res.Status, res.Aborted = messages.StatusCancelled, true
		}
	}
	return &record.Finished{Result: res}
}

// stories are the golden logs by file name. What is in a file must fold forever: add stories, never change one.
func stories(t *testing.T) map[string][]record.Entry {
	t.Helper()
	return map[string][]record.Entry{
		"simple": simple(t), "crash_refusal_park": crashRefusalPark(t), "cancelled": cancelled(t), "refused": refused(t),
		"plan":     planStory(t),
		"protocol": protocol(t), "limits": limits(t),
		"budget": budget(t), "approvals": approvals(t), "edited": edited(t),
		"forked":    forked(t),
		"session":   session(t),
		"memories":  memories(t),
		"embedded":  embedded(t),
		"modelwait": modelWait(t),
		"rate":      ratedStory(t),
		"steered":   steered(t),
		"traced":    traced(t),
		"elsewhere": elsewhere(t),
		"delegated": delegated(t),
		"files":     filesStory(t),
		"workspace": workspaceStory(t),
	}
}

// simple is a run of two steps with two tool calls.
func simple(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	a, b := call("c1", "read_file", `{"path":"a.go"}`), call("c2", "read_file", `{"path":"b.go"}`)
	s.add(started(), claimed("k1", "w1", 7))
	s.add(stepStarted(1))
	s.add(replied(1, "Let me look.", a, b))
	s.add(returned(1, b, "package b", ""))
	s.add(returned(1, a, "package a", ""))
	s.add(stepEnded(1, messages.StepCompleted), stepStarted(2))
	s.add(replied(2, "Two empty packages."))
	s.add(stepEnded(2, messages.StepCompleted), finished(2, "Two empty packages.", nil))
	return s.entries
}

// crashRefusalPark is a run whose first worker dies after the intent of a call that must not be made twice; then a
// call of an unknown tool is refused, and a call waits for an answer that another worker takes up after a drain.
func crashRefusalPark(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	mail, unknown, ask := call("c1", "send_mail", `{"path":"x"}`), call("c2", "rm", `{}`), call("c3", "send_mail", `{"path":"y"}`)
	s.add(started(), claimed("k1", "w1", 7))
	s.add(stepStarted(1))
	s.add(replied(1, "", mail, unknown))
	s.add(&record.ToolStarted{Step: 1, Call: mail})
	s.add(claimed("k2", "w2", 7))
	s.add(returned(1, mail, "it is unknown whether the mail was sent", messages.CodeToolUnknownOutcome))
	s.add(returned(1, unknown, `Tool "rm" not found. Allowed tools: read_file, send_mail`, messages.CodeInvalidInput))
	s.add(stepEnded(1, messages.StepCompleted), stepStarted(2))
	s.add(replied(2, "I must ask.", ask))
	until := noon.Add(time.Hour)
	park := s.add(&record.Parked{Reason: "approval", Call: "c3", Until: &until})
	s.add(&record.Answered{ID: "x1", Park: park, By: "ann", Content: messages.TextContent("Go ahead.")})
	s.add(&record.Claimed{Claim: "k3", Worker: "w3", Ticket: 90, Resumes: "approval"})
	s.add(&record.Released{Reason: "drain"})
	s.add(claimed("k4", "w4", 90))
	s.add(returned(2, ask, "Go ahead.", ""))
	s.add(stepEnded(2, messages.StepCompleted), stepStarted(3))
	s.add(replied(3, "Done."))
	s.add(stepEnded(3, messages.StepCompleted), finished(3, "Done.", nil))
	return s.entries
}

// cancelled is a run that loses its worker and its ticket, and then is asked to stop while a park waits; the timer
// of the park comes too late.
func cancelled(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	ask := call("c1", "send_mail", `{"path":"x"}`)
	s.add(started(), claimed("k1", "w1", 7))
	s.add(&record.Lost{Ticket: 7})
	s.add(claimed("k2", "w2", 50))
	s.add(stepStarted(1))
	s.add(replied(1, "", ask))
	park := s.add(&record.Parked{Reason: "approval", Call: "c1"})
	s.add(&record.CancelRequested{ID: "x1", By: "ann", Reason: "too slow"})
	s.add(&record.Expired{Park: park})
	s.add(&record.Claimed{Claim: "k3", Worker: "w1", Ticket: 60, Resumes: "approval"})
	s.add(stepEnded(1, messages.StepSkipped), finished(1, "", &messages.RunError{
		Message: "cancelled by ann: too slow", Code: messages.CodeCancelled,
	}))
	return s.entries
}

// approvals is a run of three calls that wait for an approval: one is approved, one denied, one too late.
func approvals(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	first := started()
	first.Agent.Approve = &messages.Approve{Always: []string{"send_mail"}, Expires: messages.Duration(time.Hour)}
	s.add(first, claimed("k1", "w1", 7))
	s.add(stepStarted(1))
	a, b, c := call("c1", "send_mail", `{"path":"x"}`), call("c2", "send_mail", `{"path":"y"}`), call("c3", "send_mail", `{"path":"z"}`)
	s.add(replied(1, "", a, b, c))
	until := noon.Add(time.Hour)
	park := func(c messages.ToolCall) (uint64, *record.Decided) {
		asked := messages.NewApproval("reviewer", 1, "", c)
		seq := s.add(&record.Parked{Reason: queue.ParkApproval, Call: c.ID, Until: &until, Approval: asked})
		return seq, &record.Decided{ID: "x-" + c.ID, Park: seq, Step: 1, Call: c.ID, Hash: asked.Hash, By: "ann", Until: &until}
	}
	resumed := func(claim string, ticket uint64) {
		s.add(&record.Claimed{Claim: claim, Worker: "w2", Ticket: ticket, Delivery: 1, Resumes: queue.ParkApproval})
	}
	_, yes := park(a)
	s.add(yes)
	resumed("k2", 20)
	s.add(&record.ToolStarted{Step: 1, Call: a})
	s.add(returned(1, a, "sent", ""))
	_, no := park(b)
	no.Denied, no.Reason = true, "not to them"
	s.add(no)
	resumed("k3", 30)
	s.add(returned(1, b, "User denied approval: not to them", messages.CodeApprovalDenied))
	seq, _ := park(c)
	s.add(&record.Expired{Park: seq, Call: "c3"})
	resumed("k4", 40)
	s.add(returned(1, c, messages.TextLapsed, messages.CodeApprovalExpired))
	s.add(stepEnded(1, messages.StepCompleted), stepStarted(2))
	s.add(replied(2, "One mail was sent."))
	s.add(stepEnded(2, messages.StepCompleted), finished(2, "One mail was sent.", nil))
	return s.entries
}

// edited is a run of a call that a person approves with other arguments than the model gave it.
func edited(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	first := started()
	first.Agent.Approve = &messages.Approve{Always: []string{"send_mail"}, Edit: []string{"send_mail"}, Expires: messages.Duration(time.Hour)}
	s.add(first, claimed("k1", "w1", 7))
	s.add(stepStarted(1))
	c := call("c1", "send_mail", `{"path":"x"}`)
	s.add(replied(1, "", c))
	until := noon.Add(time.Hour)
	asked := messages.NewApproval("reviewer", 1, "", c)
	asked.Editable = true
	seq := s.add(&record.Parked{Reason: queue.ParkApproval, Call: c.ID, Until: &until, Approval: asked})
	made := c
	made.Arguments = `{"path":"y"}`
	s.add(&record.Decided{
		ID: "x-c1", Park: seq, Step: 1, Call: "c1", Hash: messages.HashArguments(made.Arguments), Arguments: made.Arguments, Asked: asked.Hash,
		By: "ann", Reason: "not to x", Until: &until,
	})
	s.add(&record.Claimed{Claim: "k2", Worker: "w2", Ticket: 20, Delivery: 1, Resumes: queue.ParkApproval})
	s.add(&record.ToolStarted{Step: 1, Call: made, Edited: true})
	s.add(returned(1, made, "sent", ""))
	s.add(stepEnded(1, messages.StepCompleted), stepStarted(2))
	s.add(replied(2, "One mail was sent."))
	s.add(stepEnded(2, messages.StepCompleted), finished(2, "One mail was sent.", nil))
	return s.entries
}

// refused is a body that is no task.
func refused(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	f := finished(0, "", &messages.RunError{Message: "task: not valid JSON at byte 0", Code: messages.CodeInvalidInput})
	f.Dead = true
	s.add(&record.Started{Task: messages.Task{ID: ref.Run, Tenant: ref.Tenant, Input: messages.Input{}}, QueuedAt: noon, Raw: []byte("do it")}, f)
	return s.entries
}

// budget is a run that is warned of its budget, asks for more, gets it once and is then denied it.
func budget(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	begin := started()
	begin.Task.Deadline = new(noon.Add(time.Hour))
	begin.Agent.Budget = &messages.Budget{
		Caps: messages.Caps{ModelCalls: 1, Cost: new(0.5)}, Soft: 0.8, OnBudget: messages.OnBudgetAsk,
	}
	asks := func() *record.Parked {
		return &record.Parked{
			Reason: queue.ReasonBudget, Until: begin.Task.Deadline, Limit: messages.CapModelCalls,
			Question: "modelCalls: 1 of 1 used, and the next model call needs 1",
		}
	}
	a, b := call("c1", "read_file", `{"path":"a.go"}`), call("c2", "read_file", `{"path":"b.go"}`)
	priced := func(r *record.ModelReplied) *record.ModelReplied { r.Cost = new(0.0125); return r }
	s.add(begin, claimed("k1", "w1", 7))
	s.add(stepStarted(1))
	s.add(priced(replied(1, "", a)), &record.ToolStarted{Step: 1, Call: a})
	s.add(returned(1, a, "package a", ""))
	park := s.add(&record.BudgetWarned{Limit: messages.CapModelCalls, Spent: 1, Allowed: 1}, asks())
	s.add(&record.Answered{ID: "x1", Park: park, By: "ann", Content: messages.TextContent(messages.AnswerContinue)})
	s.add(&record.Claimed{Claim: "k2", Worker: "w2", Ticket: 50, Resumes: queue.ReasonBudget})
	s.add(stepEnded(1, messages.StepCompleted), stepStarted(2))
	s.add(replied(2, "", b))
	s.add(returned(2, b, "package b", ""))
	park = s.add(asks())
	s.add(&record.Answered{ID: "x2", Park: park, By: "ann", Content: messages.TextContent("no"), IsError: true})
	s.add(&record.Claimed{Claim: "k3", Worker: "w1", Ticket: 60, Resumes: queue.ReasonBudget})
	s.add(stepEnded(2, messages.StepFailed), finished(2, "", &messages.RunError{
		Message: "modelCalls: 2 of 2 used, and the next model call needs 1; more was denied by ann", Code: messages.CodeBudget,
	}))
	return s.entries
}

// session is a run that waits for its turn, and then has what is older than its window summed up.
func session(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t, turns: true}
	begin := started()
	begin.Agent.Session = &messages.SessionPolicy{MaxMessages: 1, Summary: messages.SummaryOn}
	s.add(begin, claimed("k1", "w1", 7))
	park := s.add(&record.Parked{Reason: queue.ParkSession})
	s.add(&record.SessionGranted{Park: park})
	s.add(&record.Claimed{Claim: "k2", Worker: "w2", Ticket: 50, Resumes: queue.ParkSession})
	s.add(&record.Recalled{From: "r-1", Messages: conversation(), Older: 2})
	s.add(&record.Summarised{
		Text: "Two greeted.", Usage: messages.Usage{Input: 30, Output: 5, Total: 35}, Provider: "scripted", Model: "script-1", Millis: 40,
	}, stepStarted(1))
	s.add(replied(1, "Goodbye."), stepEnded(1, messages.StepCompleted), finished(1, "Goodbye.", nil))
	return s.entries
}

// memories is a run that begins with what long-term memory holds, and ends with its provenance.
func memories(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	begin := started()
	begin.Agent.Memory = &messages.MemoryPolicy{Recall: &messages.RecallPolicy{TopK: 3, MinScore: 0.5}}
	s.add(begin, claimed("k1", "w1", 7))
	s.add(&record.MemoryRecalled{
		Memories: []record.Memory{{MemoryUsed: memoryUsed(), Text: "The ferry leaves from pier 4."}}, LeftOut: 1, Degraded: "vectors", Millis: 12,
	}, stepStarted(1))
	end := finished(1, "From pier 4.", nil)
	end.Result.Provenance.Memories = []messages.MemoryUsed{memoryUsed()}
	s.add(replied(1, "From pier 4."), stepEnded(1, messages.StepCompleted), end)
	return s.entries
}

// embedded is a run whose searches of long-term memory had texts embedded by a model that is paid for, and by one without a price.
func embedded(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	begin := started()
	begin.Agent.Memory = &messages.MemoryPolicy{Recall: &messages.RecallPolicy{}}
	s.add(begin, claimed("k1", "w1", 7))
	s.add(&record.MemoryRecalled{Millis: 12, Embedded: fullEmbedded()}, stepStarted(1))
	c := call("c1", messages.ToolRecall, `{"text":"ferry"}`)
	s.add(replied(1, "", c), &record.ToolStarted{Step: 1, Call: c})
	answer := returned(1, c, "Nothing was found.", "")
	answer.Embedded = &record.Embedded{Model: "own", Calls: 1, Tokens: 3}
	s.add(answer, stepEnded(1, messages.StepCompleted), stepStarted(2))
	end := finished(2, "No ferry is known.", nil)
	s.add(replied(2, "No ferry is known."), stepEnded(2, messages.StepCompleted), end)
	return s.entries
}

// elsewhere is a run that began on a worker without its tools, and waits for one that has them.
func elsewhere(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t, turns: true}
	begin := started()
	specs := begin.Tools
	begin.Tools = nil
	needs := &messages.Needs{Tools: begin.Agent.Tools, Labels: messages.Labels{"gpu": "true"}}
	s.add(begin, claimed("k1", "w1", 7), &record.Parked{Reason: queue.ParkWorker, Question: "no worker has the tool read_file", Needs: needs})
	s.add(&record.SessionGranted{Park: s.entries[0].Seq})
	s.add(&record.Claimed{Claim: "k2", Worker: "w2", Ticket: 50, Resumes: queue.ParkWorker, Tools: specs}, stepStarted(1))
	s.add(replied(1, "Two empty packages."), stepEnded(1, messages.StepCompleted), finished(1, "Two empty packages.", nil))
	return s.entries
}

// modelWait is a run whose model cannot be reached for a while.
func modelWait(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t, turns: true}
	s.add(started(), claimed("k1", "w1", 7), stepStarted(1))
	until := noon.Add(time.Minute)
	park := s.add(&record.Parked{Reason: queue.ParkModel, Until: &until, Cause: &messages.Cause{
		Code: messages.CodeModelUnreachable, Message: "model: network: connection refused", Provider: "openai/gpt-4o", Attempt: 1,
	}})
	s.add(&record.Expired{Park: park})
	s.add(&record.Claimed{Claim: "k2", Worker: "w2", Ticket: 50, Resumes: queue.ParkModel})
	s.add(replied(1, "Goodbye."), stepEnded(1, messages.StepCompleted), finished(1, "Goodbye.", nil))
	return s.entries
}

// traced is a run whose submitter gave a traceparent.
func traced(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t, turns: true, traced: true}
	s.add(started(), claimed("k1", "w1", 7))
	s.add(stepStarted(1))
	s.add(replied(1, "Two empty packages."), stepEnded(1, messages.StepCompleted), finished(1, "Two empty packages.", nil))
	return s.entries
}

// line is an entry in a golden log.
type line struct {
	Seq     uint64          `json:"seq"`
	Head    json.RawMessage `json:"head"`
	Records json.RawMessage `json:"records"`
}

func TestGoldenLogs(t *testing.T) {
	t.Parallel()
	all := stories(t)
	for name, entries := range all {
		path := filepath.Join("testdata", "logs", name+".jsonl")
		if *update {
			writeLog(t, path, entries)
		}
		noDiff(t, name, entries, readLog(t, path))
	}
	files, err := filepath.Glob("testdata/logs/*")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(all) {
		t.Errorf("%d files for %d stories", len(files), len(all))
	}
	for _, f := range files {
		followLog(t, f, readLog(t, f))
	}
}

// followLog checks that every head is what Follow says, and the events of the last entry.
func followLog(t *testing.T, name string, entries []record.Entry) {
	t.Helper()
	var prev record.Head
	for _, e := range entries {
		want := record.Entry{Head: record.Follow(prev, e.Records...), Records: e.Records}.At(e.Seq)
		if e.Head.Session == "" { // it was written before heads had it
			want.Head.Session = ""
		}
		if e.Head.Trace == "" { // likewise
			want.Head.Trace = ""
		}
		if diff := cmp.Diff(want, e, cmpopts.IgnoreFields(record.Head{}, "ID", "Time", "EventsThrough")); diff != "" {
			t.Errorf("%s, entry %d (-follow +file):\n%s", name, e.Seq, diff)
		}
		if got := record.Events(ref, e); len(got) != e.Head.Events {
			t.Errorf("%s, entry %d: %d events", name, e.Seq, len(got))
		}
		prev = e.Head
	}
	if prev.Phase != record.PhaseFinished {
		t.Errorf("%s ends %s", name, prev.Phase)
	}
}

func TestEventsOfGoldenLogs(t *testing.T) {
	t.Parallel()
	for name, entries := range stories(t) {
		var all bytes.Buffer
		for _, e := range entries {
			for _, ev := range record.Events(ref, e) {
				all.Write(append(encode(t, ev), '\n'))
			}
		}
		path := filepath.Join("testdata", "events", name+".jsonl")
		if *update {
			writeFile(t, path, all.Bytes())
		}
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		noDiff(t, path, string(file), all.String())
	}
}

func writeLog(t *testing.T, path string, entries []record.Entry) {
	t.Helper()
	var out bytes.Buffer
	for _, e := range entries {
		head, err := record.EncodeHead(&e.Head)
		if err != nil {
			t.Fatal(err)
		}
		records, err := record.EncodeRecords(e.Records)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(encode(t, line{e.Seq, json.RawMessage(head), records}), '\n'))
	}
	writeFile(t, path, out.Bytes())
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func readLog(t *testing.T, path string) []record.Entry {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out []record.Entry
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		decode(t, lines.Bytes(), &l)
		head, err := record.DecodeHead(string(l.Head))
		if err != nil {
			t.Fatal(err)
		}
		var strict record.Head // DecodeHead itself is not strict
		decode(t, l.Head, &strict)
		records, err := record.DecodeRecords(l.Records)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, record.Entry{Seq: l.Seq, Head: head, Records: records})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
