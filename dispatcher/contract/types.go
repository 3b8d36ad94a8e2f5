package contract

import (
	"reflect"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// named is a type that travels, by the name of its schema.
type named struct {
	name string
	of   reflect.Type
	// strict: clients send it to Longshore, which refuses unknown fields. What Longshore sends may gain fields.
	strict bool
}

func in[T any](name string) named  { return named{name, reflect.TypeFor[T](), true} }
func out[T any](name string) named { return named{name, reflect.TypeFor[T](), false} }

// types are all that travel on subjects, but for events.
func types() []named {
	return []named{
		in[messages.Task]("task"), out[messages.AgentResult]("agent-result"), out[messages.TaskResult]("task-result"), out[messages.Problem]("problem"), out[messages.Live]("live"),
		out[control.SubmitReply]("submit-reply"), in[control.RunRequest]("run-request"), in[control.ResultRequest]("result-request"), out[control.RunStatus]("run-status"),
		in[control.CancelRequest]("cancel-request"), in[control.VerifyRequest]("verify-request"),
		in[control.LogRequest]("log-request"), out[control.LogPage]("log-page"),
		in[control.ForkRequest]("fork-request"), out[control.ForkReply]("fork-reply"),
		in[control.SteerRequest]("steer-request"),
		in[control.FeedbackRequest]("feedback-request"), out[messages.Feedback]("feedback"), out[control.FeedbackList]("feedback-list"),
		in[control.DecisionRequest]("decision-request"), in[control.AnswerRequest]("answer-request"),
		in[control.ApprovalsRequest]("approvals-request"), out[control.ApprovalList]("approval-list"),
		in[control.SessionRequest]("session-request"), out[control.SessionList]("session-list"), out[control.SessionStatus]("session-status"),
		in[control.BatchOpen]("batch-open"), in[control.BatchSeal]("batch-seal"), out[messages.Batch]("batch"),
		in[control.BatchListRequest]("batch-list-request"), out[control.BatchList]("batch-list"),
		in[control.AgentApply]("agent-apply"), out[control.AgentApplied]("agent-applied"), out[control.AgentRevision]("agent-revision"),
		in[control.CatalogRequest]("catalog-request"), in[control.CatalogDelete]("catalog-delete"), out[control.Change]("change"),
		out[control.History]("history"),
		in[control.PromptPut]("prompt-put"), in[messages.Prompt]("prompt"), in[control.PromptFilter]("prompt-filter"),
		out[control.PromptList]("prompt-list"), in[control.PromptRender]("prompt-render"), out[control.PromptRendered]("prompt-rendered"),
		out[control.PromptVerdict]("prompt-verdict"),
		in[control.ScheduleRequest]("schedule-request"), in[control.SchedulePut]("schedule-put-request"), out[control.ScheduleApplied]("schedule-applied"),
		out[control.ScheduleStatus]("schedule-status"), out[control.ScheduleList]("schedule-list"), in[control.ScheduleRun]("schedule-run-request"),
		in[control.DeadListRequest]("dead-list-request"), out[control.DeadList]("dead-list"), in[control.DeadRequest]("dead-request"),
		out[messages.DeadLetter]("dead-letter"), in[control.DeadRedrive]("dead-redrive"), out[control.DeadRedriven]("dead-redriven"),
		out[control.DeadBulk]("dead-bulk"),
		in[control.Empty]("empty"), in[messages.QuotaRef]("quota-ref"), out[control.QuotaList]("quota-list"), out[control.QuotaState]("quota-state"),
		in[control.QuotaPut]("quota-put"), in[control.QuotaDelete]("quota-delete"), out[control.QuotaChange]("quota-change"),
		in[control.AdmitRequest]("admit-request"), out[control.AdmitReply]("admit-reply"),
		in[control.PauseRequest]("pause-request"), out[control.PausedThing]("paused-thing"), out[control.PauseList]("pause-list"),
		out[control.Why]("why"), in[control.LanesRequest]("lanes-request"), out[control.LaneList]("lane-list"),
		out[control.WorkerList]("worker-list"), in[control.WorkerDrain]("worker-drain"), out[messages.WorkerStatus]("worker-status"),
		in[control.KeyCreate]("key-create"), out[control.APIKey]("api-key"), in[control.KeyListRequest]("key-list-request"),
		out[control.KeyList]("key-list"), in[control.KeyRevoke]("key-revoke"),
		in[control.QueuedRequest]("queued-request"), out[control.QueuedList]("queued-list"),
		in[control.EventsRequest]("events-request"), out[control.EventPage]("event-page"),
		out[messages.LogEntry]("log-entry"), out[messages.LogEntryList]("log-entry-list"),
		in[control.RunsRequest]("runs-request"), out[control.RunPage]("run-page"), in[control.StatsRequest]("stats-request"),
		out[control.RunStats]("run-stats"), out[control.StepList]("step-list"), out[control.IndexStatus]("index-status"),
	}
}

// request is a subject of the dispatcher's micro service, with the names of the schemas of what goes there and comes back.
type request struct {
	subject, asks, answers, text string
}

func requests() []request {
	names := map[reflect.Type]string{}
	for _, n := range types() {
		names[n.of] = n.name
	}
	var out []request
	for _, o := range control.Operations() {
		out = append(out, request{o.Subject, names[reflect.TypeOf(o.Asks)], names[reflect.TypeOf(o.Reply)], o.Summary + "."})
	}
	return out
}

// event is a kind of event.
type event struct {
	name string
	data reflect.Type
	text string
}

func data[T any](name, text string) event { return event{name, reflect.TypeFor[T](), text} }

// events are all kinds of events.
func events() []event {
	return []event{
		data[messages.RunQueued](messages.EventRunQueued, "The task of a run."),
		data[messages.RunStarted](messages.EventRunStarted, "A worker has taken the run up."),
		data[messages.Step](messages.EventStepStart, "A step begins."),
		data[messages.MessageEnd](messages.EventMessageEnd, "The model has replied."),
		data[messages.ToolExecution](messages.EventToolExecutionStart, "A tool call begins."),
		data[messages.ToolExecution](messages.EventToolExecutionEnd, "A tool call has returned, or was refused."),
		data[messages.Step](messages.EventStepEnd, "A step has ended."),
		data[record.PlanData](messages.EventPlan, "The plan, and how to go on with it."),
		data[messages.RunWaiting](messages.EventRunWaiting, "The run waits."),
		data[messages.RunWaiting](messages.EventRunResumed, "The run goes on."),
		data[messages.ApprovalRequested](messages.EventApprovalRequested, "A call waits for an approval."),
		data[messages.ApprovalDecided](messages.EventApprovalDecided, "It was approved, denied, or not answered in time."),
		data[messages.SteeredData](messages.EventSteered, "A person told the run something."),
		data[messages.DecisionIgnored](messages.EventDecisionIgnored, "A decision does not count: it has no valid signature."),
		data[messages.CancelAsked](messages.EventCancelRequested, "The run was asked to stop."),
		data[messages.BudgetWarning](messages.EventBudgetWarning, "The soft share of a cap is used."),
		data[messages.HookFailure](messages.EventHookFailed, "A hook could not be asked or told."),
		data[messages.PolicyViolation](messages.EventPolicyViolation, "A rule blocked something, redacted it, or has a call wait for a person."),
		data[messages.ErrorData](messages.EventError, "A model call failed for good."),
		data[messages.TurnEnd](messages.EventTurnEnd, "All steps are done."),
		data[messages.RunFinished](messages.EventRunFinished, "The run has ended. It is the last event of its run."),
	}
}

// EventNames are the names of the events of a run.
func EventNames() []string {
	var names []string
	for _, e := range events() {
		names = append(names, e.name)
	}
	return names
}

// happenings are events about no run: of definitions, of people.
func happenings() []event {
	return []event{
		data[control.Change](control.EventAgentApplied, "The definition of an agent was stored or removed."),
		data[control.Change](control.EventPromptChanged, "A prompt was stored or removed."),
		data[control.Acted](control.EventActed, "A person or program changed something."),
		data[control.AuthDenied](control.EventAuthDenied, "A caller was refused: unknown, or not allowed to do this."),
		data[messages.Feedback](messages.EventFeedback, "A user rated a run."),
	}
}
