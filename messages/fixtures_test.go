package messages_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/scratchpad"
)

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 123456000, time.UTC)
	ref  = messages.Ref{Tenant: "acme", Run: "01KDZ6XV00000000000000000A"}
)

// fullTask has every field set but the output schema, which none with a plan may have.
func fullTask() messages.Task {
	return messages.Task{
		ID: ref.Run, Tenant: ref.Tenant, Agent: "reviewer",
		Input:   messages.Input{{Text: "Tell me about "}, {Text: "<a & b>"}},
		Context: json.RawMessage(`{"repository":"longshore","lines":[1,2.50,null]}`), Session: "s-1",
		Priority: messages.PriorityHigh, Labels: map[string]string{"team": "core", "stage": "test"},
		Limits:      &messages.Limits{MaxSteps: 3, Caps: messages.Caps{ModelCalls: 2, Cost: new(0.25)}},
		Plan:        fullPlan(),
		Deadline:    new(noon.Add(time.Hour)),
		NotBefore:   new(noon.Add(time.Minute)),
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",

		Workspace:   "drafts",
		Seed:        new(int64(7)),
		Webhook:     &messages.Webhook{URL: "https://hooks.example.com/ends?key=k", Events: []string{"failed"}},
		Concurrency: &messages.Concurrency{Key: "deploy", Limit: 2},
		Requires:    messages.Labels{"gpu": "true"},
		By:          "ann",
	}
}

// fullPlan has every field set.
func fullPlan() *messages.Plan {
	return &messages.Plan{
		Steps: []messages.PlanStep{
			{ID: "a", Description: "Read a.go.", Tool: "read_file", Args: json.RawMessage(`{"path":"a.go"}`), EstimatedDuration: 1.5},
			{
				ID: "b", Description: "Read what a.go names.", Tool: "read_file", Args: json.RawMessage(`{"path":"${steps.a.output}"}`),
				DependsOn: []string{"a"}, RequiredApprovals: []string{"ann"}, Critical: new(false),
			},
		},
		EstimatedDuration: 3, RequiredApprovals: []string{"a"},
	}
}

// fullDefinition has every field set but those that a plan, or one model, excludes.
func fullDefinition() messages.Definition {
	return messages.Definition{
		Name: "reviewer", Revision: 4, Description: "Reads code.", Instructions: "Be brief.", Planner: messages.PlannerPlan,
		Model: "openai/gpt-4o", Tools: []string{"read_file"}, MaxSteps: 10, MaxTokens: 1000, Temperature: new(0.0),
		OnToolError: messages.OnErrorFail,
		Reasoning:   messages.ReasoningKeep,
		Prompt:      &messages.PromptRef{ID: "review", Version: 12, Vars: json.RawMessage(`{"tone":"kind"}`)},
		Plan:        fullPlan(), Observe: messages.ObserveOnFailure, OnNetworkError: messages.NetworkRetry, ModelRetries: new(5),

		OnInvalidOutput: messages.OnErrorFail, OnTruncated: messages.TruncatedContinue, Parallel: 2, RepeatLimit: new(0),
		Expires:     new(time.Date(2026, 1, 3, 12, 0, 0, 0, time.UTC)),
		ToolTimeout: messages.Duration(10 * time.Second),
		Prompts: map[string]string{
			messages.PromptProtocol: "Reply in JSON. " + messages.PlaceTools, "plan": "Plan {task.description}",
		},
		Cache:  true,
		Budget: fullBudget(),

		Approve: &messages.Approve{
			Always: []string{"read_file"}, Edit: []string{"read_file"}, Expires: messages.Duration(time.Hour), OnDeny: messages.OnDenyEnd,
		},
		Memory: &messages.MemoryPolicy{Collections: []string{"facts", "man*", "plans"}, Recall: &messages.RecallPolicy{
			Collections: []string{"facts", "manuals"}, Scope: messages.MemoryOfSession, TopK: 3, Tokens: 800, MinScore: 0.5, Timeout: messages.Duration(2 * time.Second), Required: true,
		}, Learn: &messages.LearnPolicy{Collection: "plans", Rated: true, TTL: messages.Duration(time.Hour)}},
		Session:  &messages.SessionPolicy{MaxMessages: 40, MaxTokens: 8000, Summary: messages.SummaryOn, KeepTools: true},
		Delegate: &messages.Delegate{Agents: []string{"reader"}, Depth: 2, Total: 20},
		Grants: &messages.Grants{
			Hosts: []string{"api.example.com", "*.docs.example.com:8443"}, Methods: []string{"GET"}, Credentials: []string{"tracker"},
			Databases: []string{"orders"}, Writable: []string{"orders"}, KV: messages.KVSession,
			Programs: []string{"git"}, Folders: []string{"/usr/share/dict"},
		},
		ToolRetries: map[string]int{"read_file": 1},
		Policy: &messages.Policy{
			Tools: &messages.ToolRules{Allow: []string{"read_*"}, Deny: []string{"shell"}}, Hosts: []string{"*.example.com"},
			Content: []messages.ContentRule{{
				Name: "mail", At: []messages.PolicyPoint{messages.PolicyOutput}, Tools: []string{"read_file"}, Category: "email", Action: messages.PolicyBlock,
			}},
			Approve: []messages.ApproveRule{{
				Name: "big", Tool: "read_file", Argument: "filePath", Pattern: "^secret/", Hosts: []string{"a.example.com"}, First: true, CostAbove: new(1.5), Edit: true,
			}},
			Rates:  []messages.RateRule{{Name: "site", Tool: "http_*", PerMinute: new(10), PerHour: new(100)}},
			Retain: []messages.RetainRule{{Collection: "facts*", For: messages.Duration(720 * time.Hour)}},
			Taint:  &messages.TaintRule{Private: []string{"sql_*"}, Untrusted: []string{"http_request"}, Egress: []string{"http_request"}},
		},
		Hooks: []messages.Hook{{
			On: messages.HookPreTool, URL: "https://hooks.example.com/a?b=c", Timeout: messages.Duration(2 * time.Second), OnFailure: messages.HookFail,
			Headers: map[string]string{"X-Team": "core"},
		}},
	}
}

func fullResultFiles() *messages.ResultFiles {
	hash := strings.Repeat("0a", 32)
	return &messages.ResultFiles{
		Step: 2, Manifest: hash, Count: 2, Bytes: 7, LeftOut: 1,
		List: []messages.SavedFile{{Name: "run.sh", Size: 7, Type: messages.MediaType("run.sh"), Hash: hash, Exec: true}},
	}
}

func fullPermit() record.Permit {
	return record.Permit{Step: 1, Call: "c1", Rates: []string{"fleet:site/1m0s"}, From: noon, To: noon.Add(time.Minute)}
}

func fullApproval() *messages.Approval {
	a := messages.NewApproval("reviewer", 1, "a", messages.ToolCall{ID: "c1", Name: "read_file", Arguments: `{"path":"a.go"}`})
	a.Editable = true
	return a
}

func fullBudget() *messages.Budget {
	return &messages.Budget{
		Caps: messages.Caps{
			ModelCalls: 5, ToolCalls: 9, Tokens: 20_000, Cost: new(0.5), WallTime: messages.Duration(90 * time.Second),
		},
		Soft: 0.8, OnBudget: messages.OnBudgetAsk, UnknownPrice: messages.UnknownPriceAllow,
	}
}

func fullUsage() messages.Usage {
	return messages.Usage{Input: 100, Output: 20, CacheRead: 50, CacheWrite: 10, Reasoning: 5, Total: 120}
}

func fullResult() messages.AgentResult {
	return messages.AgentResult{
		ID: ref.Run, Success: false, Result: "half of it",
		Error:     &messages.RunError{Message: "no answer", Code: messages.CodeModelTimeout, Info: map[string]any{"after": "60s"}},
		StartedAt: noon, FinishedAt: noon.Add(time.Minute), Status: messages.StatusFailed, SessionID: "s-1", Steps: 2,
		Actions: []messages.ActionResult{{
			Step: 1, Type: "tool", CallID: "c1", Name: "read_file", Input: `{"path":"a.go"}`, Output: "package a", OK: false,
			Code: messages.CodeToolFailed, Millis: 3, Meta: json.RawMessage(`{"bytes":9}`),
		}},
		ModelCalls: []messages.ModelCall{{
			Step: 1, Provider: "openai", Model: "gpt-4o", Stop: messages.StopToolCalls, Usage: fullUsage(), Millis: 900,
			Cached: true,
			Cost:   new(0.0125),
		}},
		TokenUsage: fullUsage(), CostEstimate: new(0.0125), Below: &messages.Below{Runs: 2, Cost: 0.03, Tokens: 340}, Summary: "One file was read.", Outputs: []string{"review.md"}, Logs: ref.LogSubject(),
		EventStream: ref.EventFilter(),
		Provenance: &messages.Provenance{
			Agent: "reviewer", Revision: 4, Planner: messages.PlannerJSON, Prompts: []messages.PromptUsed{{ID: "review", Version: 3}},
			Models: []string{"openai/gpt-4o"},
		},
		Aborted: true, Output: json.RawMessage(`{"files":2}`), Attachments: map[string]string{"review.md": "acme/run-1/review.md"}, Deterministic: true,
		Files: fullResultFiles(), MemoryDeltas: fullMemoryChanges(),
		Diagnostics: &messages.Diagnostics{
			Warnings: []string{"step 1: a model call failed"}, Traces: []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		},
		Transcript: &messages.Transcript{Next: "17.1", Messages: []messages.TranscriptMessage{{
			At: "17.1", Time: noon, Step: 1, Recalled: true, Truncated: true,
			Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent("Two empty packages.")},
		}}},
		RetryInfo: &messages.RetryInfo{Attempts: 2, LastError: "worker lost"}, Seed: new(int64(7)),
		Metrics: &messages.Metrics{DurationMs: 60000, ToolLatencyMs: map[string]int64{"read_file": 3}}, Cut: "the first 3 tool calls", Truncated: true,
	}
}

func fullShown() *record.Shown {
	return &record.Shown{Redact: 1, NoInputs: true, NoOutputs: true, NoReplies: true}
}

// fullRecords has every kind of record with every field set.
func fullRecords() []record.Record {
	call := messages.ToolCall{ID: "c1", Name: "read_file", Arguments: `{"path":"a.go"}`}
	until := noon.Add(time.Hour)
	return []record.Record{
		&record.Started{
			Task: fullTask(), Agent: fullDefinition(), QueuedAt: noon, Raw: []byte{0xff, 0},
			ForkedFrom: &messages.Origin{Run: "run-0", Seq: 9, Step: 2}, Prefix: record.Records{&record.StepStarted{Step: 1}}, Shown: fullShown(),
			Parent: fullParent(),
			Tools: []messages.ToolSpec{{
				Name: "read_file", Description: "Reads a file.", InputSchema: json.RawMessage(`{"type":"object"}`),
				Effect: messages.EffectRead, Destructive: true, SafeByDefault: true,
			}},
		},
		&record.Claimed{Claim: "k1", Worker: "w1", Ticket: 7, Delivery: 2, Resumes: "approval", Tools: []messages.ToolSpec{{Name: "read_file"}}},
		&record.StepStarted{Step: 1, StepID: "a", Purpose: messages.PurposeObserve},
		&record.ModelReplied{
			Step: 1, Message: messages.Message{
				Role: messages.RoleAssistant, Content: []messages.Block{{Text: "Let me look."}, {ToolCall: &call}},
			},
			Stop: messages.StopToolCalls, Usage: fullUsage(), Provider: "openai", Model: "gpt-4o", Millis: 900, Cached: true,
			Cost: new(0.0125), FirstTokenMillis: 120,
		},
		&record.ModelFailed{Step: 1, Error: messages.RunError{Message: "busy", Code: messages.CodeModelOverloaded}, Fallback: record.FallbackPark, Provider: "openai/gpt-4o"},
		&record.ToolStarted{Step: 1, Call: call, StepID: "a", Edited: true},
		&record.ToolReturned{
			Step: 1, Name: "read_file", Result: messages.ToolResult{
				CallID: "c1", Content: messages.TextContent("not found"), IsError: true,
			},
			Code: messages.CodeToolFailed, Millis: 3, StepID: "a", Files: []string{"review.md"}, Meta: json.RawMessage(`{"bytes":9}`),
			Embedded: fullEmbedded(),
		},
		&record.StepEnded{Step: 1, Status: messages.StepCompleted, StepID: "a", Reason: "no such file"},
		&record.Parked{Reason: "approval", Call: "c1", Until: &until, Limit: messages.CapTokens, Question: "May it?", Approval: fullApproval(), Again: true, Semaphore: "tenant.acme", Cause: fullCause(), Needs: fullNeeds(), Permits: []record.Permit{fullPermit()}, Unmade: []string{"c1"}},
		&record.Released{Reason: "drain", Spent: true},
		&record.Lost{Ticket: 7},
		&record.CancelRequested{ID: "x1", By: "ann", Reason: "too slow"},
		&record.Answered{ID: "x2", Park: 9, By: "ann", Content: messages.TextContent("yes"), IsError: true},
		&record.Expired{Park: 9, Call: "c1"},
		&record.Finished{Result: fullResult(), Dead: true, Used: []string{"read_file"}},
		&record.Planned{
			Step: 1, Decision: record.DecisionAdapt, Reason: "b failed", Plan: fullPlan(), Renewed: []string{"b"}, Fallback: true,
			Approvals: []string{"b"}, Means: map[string]float64{"b": 0.25},
		},
		&record.BudgetWarned{Limit: messages.CapCost, Spent: 0.4, Allowed: 0.5},
		&record.Decided{
			ID: "x3", Park: 9, Step: 1, Call: "c1", Hash: messages.HashArguments(`{"path":"a.go"}`), Denied: true, By: "ann", Reason: "not now",
			Until: &until, Arguments: `{"path":"a.go"}`, Asked: messages.HashArguments(`{"path":"b.go"}`),
		},
		&record.SessionGranted{Park: 9},
		&record.Recalled{From: "r-1", Messages: conversation(), Older: 1, Dropped: 2, Used: []string{"read_file"}, Scratchpad: []scratchpad.Note{{ID: "n1", Stream: "todo", Text: "Greet ann."}}},
		&record.Summarised{
			Text: "Two greeted.", Error: &messages.RunError{Message: "busy", Code: messages.CodeModelOverloaded}, Usage: fullUsage(),
			Provider: "openai", Model: "gpt-4o", Millis: 900, Cached: true, Cost: new(0.0125),
		},
		&record.PolicyApplied{
			Edit:  true,
			Point: messages.PolicyArguments, Action: messages.PolicyRedact, Rule: "mail", Source: "tenant acme", Reason: "an e-mail address was taken out",
			Step: 1, StepID: "a", Tool: "read_file", Call: "c1", Arguments: `{"filePath":"[redacted]"}`,
		},
		&record.MemoryWritten{Step: 1, StepID: "a", Call: "c1", Changes: fullMemoryChanges(), Learned: true, Error: "away", Embedded: fullEmbedded()},
		fullMemoryRecalled(),
		&record.HookFailed{On: messages.HookPreTool, Hook: "https://hooks.example.com/a", Step: 1, Call: "c1", Reason: "answered 500", Fatal: true},
		&record.Steered{ID: "x4", By: "ann", Message: "Skip b.go."},
		&record.Lined{Semaphores: []string{queue.KeySemaphore(ref.Tenant, "deploy"), queue.TenantSemaphore(ref.Tenant)}},
		&record.Unverified{Of: record.KindDecided, Told: true},
		fullFilesSaved(),
		fullDelegated(), fullChildEnded(), &record.Withdrawn{Parent: "run-0", Reason: "it has ended"},
	}
}

func fullMemoryChanges() []messages.MemoryChange {
	return []messages.MemoryChange{
		{Memory: messages.MemoryScratchpad, Op: messages.MemoryAppend, Name: "todo", ID: "n1", Text: "Greet ann.", Bytes: 10, Evicted: 2},
		{Memory: messages.MemoryScratchpad, Op: messages.MemoryClear, Name: "done", Removed: 3},
	}
}

func fullMemoryRecalled() *record.MemoryRecalled {
	return &record.MemoryRecalled{
		Memories: []record.Memory{{MemoryUsed: memoryUsed(), Text: "The ferry leaves from pier 4."}}, LeftOut: 2, Degraded: "vectors", Error: "it did not answer in time",
		Fatal: true, Millis: 12, Embedded: fullEmbedded(),
	}
}

func fullEmbedded() *record.Embedded {
	return &record.Embedded{Model: "text-embedding-3-small", Calls: 2, Tokens: 50_000, Cost: new(0.001)}
}

func memoryUsed() messages.MemoryUsed {
	return messages.MemoryUsed{ID: "m1", Collection: "manuals", Score: 1.25, Run: "run-0", Document: "ferries.md", Part: 3, Created: noon}
}

func fullNeeds() *messages.Needs {
	return &messages.Needs{Tools: []string{"berth_price"}, Labels: messages.Labels{"gpu": "true"}, Pinned: true}
}

// emptyRecords has every kind of record with no field set.
func emptyRecords() []record.Record {
	return []record.Record{
		&record.Started{}, &record.Claimed{}, &record.StepStarted{}, &record.ModelReplied{}, &record.ModelFailed{},
		&record.ToolStarted{}, &record.ToolReturned{}, &record.StepEnded{}, &record.Parked{}, &record.Released{},
		&record.Lost{}, &record.CancelRequested{}, &record.Answered{}, &record.Expired{}, &record.Finished{},
		&record.Planned{},
		&record.BudgetWarned{},
		&record.HookFailed{}, &record.PolicyApplied{}, &record.MemoryWritten{}, &record.MemoryRecalled{},
		&record.Decided{},
		&record.SessionGranted{}, &record.Recalled{}, &record.Summarised{},
		&record.Steered{}, &record.Lined{}, &record.Unverified{},
		&record.Delegated{}, &record.ChildEnded{}, &record.Withdrawn{},
		&record.FilesSaved{},
	}
}

func fullFilesSaved() *record.FilesSaved {
	return &record.FilesSaved{
		Step: 1, Manifest: strings.Repeat("0a", 32), Files: 3, Bytes: 17, Added: 1, Changed: 1, Removed: 1, LeftOut: 1,
		Taken: &record.Taken{Workspace: "drafts", Turn: 4, Run: "run-0"},
	}
}

// conversation is what earlier runs of a session left.
func conversation() []messages.Message {
	return []messages.Message{
		{Role: messages.RoleUser, Content: messages.TextContent("Hello.")},
		{Role: messages.RoleAssistant, Content: messages.TextContent("Hello, too.")},
	}
}

// story builds a log as workers and dispatcher would.
type story struct {
	t       *testing.T
	entries []record.Entry
	turns   bool // it is of a time when heads name the session
	traced  bool // it is of a time when heads name the trace
}

// add appends an entry and returns its sequence. Sequences have gaps, for many runs share a stream.
func (s *story) add(records ...record.Record) uint64 {
	s.t.Helper()
	n := len(s.entries)
	var prev record.Head
	if n > 0 {
		prev = s.entries[n-1].Head
	}
	h := record.Follow(prev, records...)
	if !s.turns {
		h.Session = ""
	}
	if !s.traced {
		h.Trace = ""
	}
	h.Time = noon.Add(time.Duration(n) * time.Second)
	h.ID = "01KDZ6XV0000000000000000" + string(rune('A'+n/10)) + string(rune('0'+n%10))
	if n > 1 {
		h.EventsThrough = s.entries[n-2].Seq
	}
	seq := uint64(11 + 3*n)
	s.entries = append(s.entries, record.Entry{Head: h, Records: records}.At(seq))
	return seq
}

func noDiff(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// fullSchedule has every field set, but for what does not go with the others.
func fullSchedule() *control.Schedule {
	return &control.Schedule{
		Name: "nightly", Tenant: ref.Tenant, Description: "Tidies up.", Cron: "0 3 * * *", TimeZone: "Europe/Berlin",
		Task:    messages.Task{Agent: "reviewer", Input: messages.TextInput("Tidy up."), Priority: messages.PriorityLow},
		CatchUp: control.CatchUpOne, Overlap: control.OverlapSkip, Paused: true, Until: new(noon.Add(time.Hour)), Revision: 4,
	}
}

func fullCause() *messages.Cause {
	return &messages.Cause{Code: messages.CodeModelUnreachable, Message: "connection refused", Provider: "openai/gpt-4o", Attempt: 2}
}
