package contract

import (
	"reflect"

	"github.com/longshore-run/longshore/messages"
)

// named is a type that travels, by the name of its schema.
type named struct {
	name string
	of   reflect.Type
	// strict: somebody sends it to Longshore, which refuses fields that it does not know. What Longshore sends may have more
	// fields one day.
	strict bool
}

// Empty is what asks for all there is.
type Empty struct{}

func in[T any](name string) named  { return named{name, reflect.TypeFor[T](), true} }
func out[T any](name string) named { return named{name, reflect.TypeFor[T](), false} }

// types are all that travel on subjects, but for events.
func types() []named {
	return []named{
		in[messages.Task]("task"), out[messages.AgentResult]("agent-result"), out[messages.TaskResult]("task-result"), out[messages.Problem]("problem"), out[messages.Live]("live"),
		out[messages.SubmitReply]("submit-reply"), in[messages.RunRequest]("run-request"), in[messages.ResultRequest]("result-request"), out[messages.RunStatus]("run-status"),
		in[messages.CancelRequest]("cancel-request"), in[messages.VerifyRequest]("verify-request"),
		in[messages.LogRequest]("log-request"), out[messages.LogPage]("log-page"),
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
		in[Empty]("empty"), in[messages.QuotaRef]("quota-ref"), out[messages.QuotaList]("quota-list"), out[messages.QuotaState]("quota-state"),
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
	return []request{
		{messages.SubjectSubmit, "task", "submit-reply", "Submit a task. The same task under the same id is one run."},
		{messages.SubjectVerify, "verify-request", "submit-reply", "Ask whether an id is taken by this very task."},
		{messages.SubjectStatus, "run-request", "run-status", "What a run is up to."},
		{messages.SubjectResult, "result-request", "agent-result", "The result of a run that has ended."},
		{messages.SubjectCancel, "cancel-request", "run-status", "Ask a run to stop."},
		{messages.SubjectSteer, "steer-request", "run-status", "Tell a run something before its next model call."},
		{messages.SubjectFeedback, "feedback-request", "feedback", "Say what somebody thinks of a run."},
		{messages.SubjectFeedbackList, "run-request", "feedback-list", "What people think of a run."},
		{messages.SubjectLog, "log-request", "log-page", "The log of a run, in pages."},
		{messages.SubjectFork, "fork-request", "fork-reply", "A new run from the beginning of another one."},
		{messages.SubjectApprovals, "approvals-request", "approval-list", "The calls that wait for an approval."},
		{messages.SubjectApprove, "decision-request", "run-status", "Approve a call that waits."},
		{messages.SubjectDeny, "decision-request", "run-status", "Deny a call that waits."},
		{messages.SubjectAnswer, "answer-request", "run-status", "Answer the question that a run waits with."},
		{messages.SubjectSessions, "session-request", "session-list", "The sessions of a tenant."},
		{messages.SubjectSession, "session-request", "session-status", "The runs of a session."},
		{messages.SubjectSessionDelete, "session-request", "session-status", "Forget a conversation."},
		{messages.SubjectBatchOpen, "batch-open", "batch", "Begin a batch, or go on with one."},
		{messages.SubjectBatchSeal, "batch-seal", "batch", "Say that all lines of a batch are there."},
		{messages.SubjectBatchStatus, "run-request", "batch", "What a batch is up to."},
		{messages.SubjectBatchList, "batch-list-request", "batch-list", "The batches of a tenant."},
		{messages.SubjectBatchCancel, "cancel-request", "batch", "Cancel a batch."},
		{messages.SubjectAgentApply, "agent-apply", "agent-applied", "Store the definition of an agent."},
		{messages.SubjectAgentGet, "catalog-request", "agent-revision", "The definition of an agent."},
		{messages.SubjectAgentHistory, "catalog-request", "history", "Who changed an agent, and when."},
		{messages.SubjectAgentDelete, "catalog-delete", "change", "Remove an agent."},
		{messages.SubjectPromptPut, "prompt-put", "prompt", "Store a prompt."},
		{messages.SubjectPromptGet, "catalog-request", "prompt", "A prompt."},
		{messages.SubjectPromptList, "prompt-filter", "prompt-list", "The prompts, without their texts."},
		{messages.SubjectPromptRender, "prompt-render", "prompt-rendered", "Fill in a prompt."},
		{messages.SubjectPromptValidate, "prompt", "prompt-verdict", "Check a prompt and store nothing."},
		{messages.SubjectPromptHistory, "catalog-request", "history", "Who changed a prompt, and when."},
		{messages.SubjectPromptDelete, "catalog-delete", "change", "Remove a prompt."},
		{messages.SubjectSchedulePut, "schedule-put-request", "schedule-applied", "Store a schedule."},
		{messages.SubjectScheduleGet, "schedule-request", "schedule-status", "A schedule, its next times and the last one."},
		{messages.SubjectScheduleList, "schedule-request", "schedule-list", "The schedules of a tenant."},
		{messages.SubjectScheduleDelete, "schedule-request", "schedule-status", "Remove a schedule."},
		{messages.SubjectSchedulePause, "schedule-request", "schedule-status", "Submit nothing until it is resumed."},
		{messages.SubjectScheduleResume, "schedule-request", "schedule-status", "Go on with the next time."},
		{messages.SubjectScheduleRun, "schedule-run-request", "submit-reply", "Submit the task of a schedule now."},
		{messages.SubjectDeadList, "dead-list-request", "dead-list", "The dead letters, oldest first."},
		{messages.SubjectDeadShow, "dead-request", "dead-letter", "A dead letter with its body."},
		{messages.SubjectDeadRedrive, "dead-redrive", "dead-redriven", "Send a dead letter again."},
		{messages.SubjectDeadPurge, "dead-request", "dead-letter", "Remove a dead letter."},
		{messages.SubjectDeadRedriveAll, "dead-list-request", "dead-bulk", "Send all that fit again."},
		{messages.SubjectDeadPurgeAll, "dead-list-request", "dead-bulk", "Remove all that fit."},
		{messages.SubjectAdmit, "admit-request", "admit-reply", "Ask whether a tenant may submit a task now."},
		{messages.SubjectQuotaList, "empty", "quota-list", "All quotas."},
		{messages.SubjectQuotaGet, "quota-ref", "quota-state", "A quota, and what is used of it."},
		{messages.SubjectQuotaPut, "quota-put", "quota-change", "Store a quota."},
		{messages.SubjectQuotaDelete, "quota-delete", "quota-change", "Take all limits of a quota away."},
		{messages.SubjectPauses, "empty", "pause-list", "What is paused."},
		{messages.SubjectPause, "pause-request", "paused-thing", "Pause a tenant, an agent or a provider."},
		{messages.SubjectResume, "pause-request", "paused-thing", "Resume what is paused."},
		{messages.SubjectWhy, "run-request", "why", "What a run waits for, or what it does."},
		{messages.SubjectLanes, "lanes-request", "lane-list", "What waits in the queue, by tenant and priority."},
		{messages.SubjectWorkers, "empty", "worker-list", "The workers that answer."},
		{messages.SubjectWorkerDrain, "worker-drain", "worker-status", "Take a worker out of the fleet."},
		{messages.SubjectKeyCreate, "key-create", "api-key", "Store the hash of a new API key."},
		{messages.SubjectKeyList, "key-list-request", "key-list", "The API keys, without what they are."},
		{messages.SubjectKeyRevoke, "key-revoke", "change", "Revoke an API key."},
		{messages.SubjectQueued, "queued-request", "queued-list", "The tasks that no worker has begun, oldest first."},
		{messages.SubjectEvents, "events-request", "event-page", "Stored events of a tenant or a run, page by page."},
		{messages.SubjectRuns, "runs-request", "run-page", "Runs that have begun, newest first."},
		{messages.SubjectRunStats, "stats-request", "run-stats", "What became of runs, added up."},
		{messages.SubjectRunSteps, "run-request", "step-list", "The steps of a run."},
		{messages.SubjectIndex, "empty", "index-status", "How the index of runs is."},
		{messages.SubjectIndexRebuild, "empty", "empty", "Make the index of runs again from the events."},
	}
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
		data[messages.PlanData](messages.EventPlan, "The plan, and how to go on with it."),
		data[messages.RunWaiting](messages.EventRunWaiting, "The run waits."),
		data[messages.RunWaiting](messages.EventRunResumed, "The run goes on."),
		data[messages.ApprovalRequested](messages.EventApprovalRequested, "A call waits for an approval."),
		data[messages.ApprovalDecided](messages.EventApprovalDecided, "It was approved, denied, or nobody came."),
		data[messages.SteeredData](messages.EventSteered, "Somebody told the run something."),
		data[messages.DecisionIgnored](messages.EventDecisionIgnored, "What somebody decided does not count: it has no valid signature."),
		data[messages.CancelAsked](messages.EventCancelRequested, "Somebody asked the run to stop."),
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
		data[messages.Acted](messages.EventActed, "Somebody changed something."),
		data[messages.AuthDenied](messages.EventAuthDenied, "Somebody was not let in, or not allowed what he asked for."),
		data[messages.Feedback](messages.EventFeedback, "Somebody said what he thinks of a run."),
	}
}
