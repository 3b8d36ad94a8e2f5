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
	// strict: somebody sends it to Longshore, which refuses fields that it does not know. What Longshore sends may have more
	// fields one day.
	strict bool
}

func in[T any](name string) named  { return named{name, reflect.TypeFor[T](), true} }
func out[T any](name string) named { return named{name, reflect.TypeFor[T](), false} }

// types are all that travel on subjects, but for events.
func types() []named {
	return []named{
		in[messages.Task]("task"), out[messages.AgentResult]("agent-result"), out[messages.TaskResult]("task-result"), out[messages.Problem]("problem"), out[messages.Live]("live"),
		out[messages.SubmitReply]("submit-reply"), in[messages.RunRequest]("run-request"), in[messages.ResultRequest]("result-request"), out[messages.RunStatus]("run-status"),
		in[messages.CancelRequest]("cancel-request"), in[messages.VerifyRequest]("verify-request"),
		in[record.LogRequest]("log-request"), out[record.LogPage]("log-page"),
		in[messages.ForkRequest]("fork-request"), out[messages.ForkReply]("fork-reply"),
		in[messages.SteerRequest]("steer-request"),
		in[messages.FeedbackRequest]("feedback-request"), out[messages.Feedback]("feedback"), out[messages.FeedbackList]("feedback-list"),
		in[messages.DecisionRequest]("decision-request"), in[messages.AnswerRequest]("answer-request"),
		in[messages.ApprovalsRequest]("approvals-request"), out[messages.ApprovalList]("approval-list"),
		in[messages.SessionRequest]("session-request"), out[messages.SessionList]("session-list"), out[messages.SessionStatus]("session-status"),
		in[messages.BatchOpen]("batch-open"), in[messages.BatchSeal]("batch-seal"), out[messages.Batch]("batch"),
		in[messages.BatchListRequest]("batch-list-request"), out[messages.BatchList]("batch-list"),
		in[messages.AgentApply]("agent-apply"), out[messages.AgentApplied]("agent-applied"), out[messages.AgentRevision]("agent-revision"),
		in[messages.CatalogRequest]("catalog-request"), in[messages.CatalogDelete]("catalog-delete"), out[messages.Change]("change"),
		out[messages.History]("history"),
		in[messages.PromptPut]("prompt-put"), in[messages.Prompt]("prompt"), in[messages.PromptFilter]("prompt-filter"),
		out[messages.PromptList]("prompt-list"), in[messages.PromptRender]("prompt-render"), out[messages.PromptRendered]("prompt-rendered"),
		out[messages.PromptVerdict]("prompt-verdict"),
		in[messages.ScheduleRequest]("schedule-request"), in[messages.SchedulePut]("schedule-put-request"), out[messages.ScheduleApplied]("schedule-applied"),
		out[messages.ScheduleStatus]("schedule-status"), out[messages.ScheduleList]("schedule-list"), in[messages.ScheduleRun]("schedule-run-request"),
		in[messages.DeadListRequest]("dead-list-request"), out[messages.DeadList]("dead-list"), in[messages.DeadRequest]("dead-request"),
		out[messages.DeadLetter]("dead-letter"), in[messages.DeadRedrive]("dead-redrive"), out[messages.DeadRedriven]("dead-redriven"),
		out[messages.DeadBulk]("dead-bulk"),
		in[control.Empty]("empty"), in[messages.QuotaRef]("quota-ref"), out[messages.QuotaList]("quota-list"), out[messages.QuotaState]("quota-state"),
		in[messages.QuotaPut]("quota-put"), in[messages.QuotaDelete]("quota-delete"), out[messages.QuotaChange]("quota-change"),
		in[messages.AdmitRequest]("admit-request"), out[messages.AdmitReply]("admit-reply"),
		in[messages.PauseRequest]("pause-request"), out[messages.PausedThing]("paused-thing"), out[messages.PauseList]("pause-list"),
		out[messages.Why]("why"), in[messages.LanesRequest]("lanes-request"), out[messages.LaneList]("lane-list"),
		out[messages.WorkerList]("worker-list"), in[messages.WorkerDrain]("worker-drain"), out[messages.WorkerStatus]("worker-status"),
		in[messages.KeyCreate]("key-create"), out[messages.APIKey]("api-key"), in[messages.KeyListRequest]("key-list-request"),
		out[messages.KeyList]("key-list"), in[messages.KeyRevoke]("key-revoke"),
		in[messages.QueuedRequest]("queued-request"), out[messages.QueuedList]("queued-list"),
		in[messages.EventsRequest]("events-request"), out[messages.EventPage]("event-page"),
		out[messages.LogEntry]("log-entry"), out[messages.LogEntryList]("log-entry-list"),
		in[messages.RunsRequest]("runs-request"), out[messages.RunPage]("run-page"), in[messages.StatsRequest]("stats-request"),
		out[messages.RunStats]("run-stats"), out[messages.StepList]("step-list"), out[messages.IndexStatus]("index-status"),
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
		data[messages.Change](messages.EventAgentApplied, "The definition of an agent was stored or removed."),
		data[messages.Change](messages.EventPromptChanged, "A prompt was stored or removed."),
		data[messages.Acted](messages.EventActed, "A person or program changed something."),
		data[messages.AuthDenied](messages.EventAuthDenied, "A caller was refused: unknown, or not allowed to do this."),
		data[messages.Feedback](messages.EventFeedback, "A user rated a run."),
	}
}
