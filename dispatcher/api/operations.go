package api

import (
	"net/http"
	"slices"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
)

// operations are all that can be asked for.
func operations() []operation {
	run := "{id}"
	return slices.Concat([]operation{
		{
			method: "POST", path: "/v1/tasks", id: "submitTask", needs: auth.Submit, tag: "tasks", summary: "Submit a task",
			text: "The task is stored when this returns; then it ends in exactly one terminal state, or waits visibly for something. " +
				"The same task with the same id, or with the same Idempotency-Key, may be sent again: it is one run. " +
				"429: a quota of the tenant is used up; Retry-After says when to come again.",
			headers: []parameter{
				{name: headerIdempotency, text: "Becomes the id of a task that has none."},
				{name: messages.HeaderTraceparent, text: "Becomes the traceparent of a task that has none: the run is in that trace."},
			},
			query: []parameter{{name: "wait", text: "Wait so long for the result, 60s at most.", kind: "duration", example: "30s"}},
			body:  messages.Task{}, reply: Submitted{}, status: http.StatusAccepted, also: http.StatusOK, waits: true, answer: submitTask,
		},
		{
			method: "GET", path: "/v1/tasks", id: "listTasks", needs: auth.Read, tag: "tasks", summary: "List runs, newest first",
			text: "Runs that no worker has begun come first, also those that wait for their time: the 10000 that are next; `moreQueued` says that there are others. " +
				"`behind` says that so many events are not in the list yet.",
			query: append(filterParameters(),
				parameter{name: "limit", text: "At most so many, 1000 at most; 100 by default.", kind: "integer"},
				parameter{name: "after", text: "Go on after this task: `next` of the page before."}),
			reply: listType(), answer: listTasks,
		},
		{
			method: "POST", path: "/v1/tasks:cancel", id: "cancelTasks", needs: auth.Submit, tag: "tasks", summary: "Cancel all runs that fit",
			query: filterParameters(), body: Reason{}, optional: true, reply: BulkCancel{}, answer: cancelTasks,
		},
		{
			method: "GET", path: "/v1/tasks/" + run, id: "getTask", needs: auth.Read, tag: "tasks", summary: "What a run is up to, and its result",
			reply: TaskState{}, answer: getTask,
		},
		{
			method: "GET", path: "/v1/tasks/" + run + "/result", id: "getResult", needs: auth.Read, tag: "tasks", summary: "The result of a run that has ended",
			query: []parameter{
				{name: "transcript", text: "Also what was said in the run, in pages.", kind: "boolean"},
				{name: "after", text: "Go on after this message: transcript.next of the page before.", example: "42.1"},
				{name: "format", text: "task-result: status, outputs, summary and the stored log entries instead, as in the schema task-result.", example: "task-result"},
			},
			reply: messages.AgentResult{}, answer: getResult,
		},
		{
			method: "GET", path: "/v1/tasks/" + run + "/events", id: "watchTask", needs: auth.Read, tag: "tasks", summary: "Follow a run",
			text: "Server-sent events: all events of the run in order, each once, from the first or the one after Last-Event-ID; then live " +
				"until run_finished. The id of an event is its number in the run, its data a CloudEvents 1.0 event. The event error is named " +
				"run_error here, because EventSource calls a failed connection error. Lines that begin with a colon keep the connection " +
				"open. A run that has ended and has no more events for the client is a 204.",
			headers: []parameter{{name: "Last-Event-ID", text: "The id of the last frame that the client has: the number of an event."}},
			query: []parameter{
				{name: "after", text: "As Last-Event-ID, for clients that cannot set headers."},
				{name: "types", text: "Only events of these names. With error instead of run_error that event keeps its old name, for one more release.", many: true, example: "message_end,run_finished"},
				{name: "format", text: "ag-ui: events of the AG-UI protocol instead. karl: those of Karl's agent loop, in ten kinds.", example: "ag-ui"},
				{name: "deltas", text: "Replies while they are written too, as events of type delta without an id. They are dropped for a slow client.", kind: "boolean"},
			},
			reply: messages.Event{}, stream: watchTask, media: "text/event-stream",
		},
		{
			method: "POST", path: "/v1/tasks/" + run + "/cancel", id: "cancelTask", needs: auth.Submit, tag: "tasks", summary: "Cancel a run",
			text: "The request is recorded when this returns; a run that was only queued has ended by then.",
			body: Reason{}, optional: true, reply: messages.RunStatus{}, answer: cancelTask,
		},
		{
			method: "POST", path: "/v1/batches", id: "submitBatch", needs: auth.Submit, tag: "batches", summary: "Submit a batch",
			text: "The body is lines of JSON, 100000 at most: a custom_id and the fields of a task. Nothing runs before the last line was " +
				"read; cut, it may be sent again with the same id, and each custom_id becomes one task. The answer is lines of JSON too: " +
				"wrong lines as they are read, and at last the batch, or the problem that ended the submission.",
			query: []parameter{
				{name: "id", text: "Of the batch, 36 characters at most; a new one by default."},
				{name: "name", text: "For people."},
				{name: "maxCost", text: "US dollars; when they are spent the rest is cancelled.", example: "12.50"},
				{name: "concurrency", text: "How many of its tasks are queued, run or wait at once, 1 to 10000; at most, and by default, 1000.", kind: "integer"},
				{name: "expires", text: "What has not ended after this time is given up; 168h by default, 336h at most.", kind: "duration", example: "24h"},
				{name: "skipInvalid", text: "Leave wrong lines out, instead of running nothing.", kind: "boolean"},
				{name: "dryRun", text: "Only say what would be submitted.", kind: "boolean"},
				{name: "webhook", text: "An address that is told when the batch has ended.", example: "https://hooks.example.com/longshore"},
				{name: "webhookEvents", text: "Only these ends: completed, failed, cancelled, expired.", many: true, example: "failed,expired"},
			},
			reply: BatchReport{}, stream: submitBatch, media: mediaLines, takes: mediaLines,
		},
		{
			method: "GET", path: "/v1/batches", id: "listBatches", needs: auth.Read, tag: "batches", summary: "List batches, newest first",
			query: []parameter{{name: "limit", text: "At most so many, 200 at most; 100 by default.", kind: "integer"}},
			reply: messages.BatchList{}, answer: listBatches,
		},
		{
			method: "GET", path: "/v1/batches/" + run, id: "getBatch", needs: auth.Read, tag: "batches", summary: "What a batch is up to",
			reply: messages.Batch{}, answer: getBatch,
		},
		{
			method: "GET", path: "/v1/batches/" + run + "/results", id: "batchResults", needs: auth.Read, tag: "batches", summary: "How the lines of a batch ended",
			text: "Lines of JSON, of what has ended so far.",
			query: []parameter{
				{name: "order", text: "input, by default, or completion."},
				{name: "status", text: "Only these: completed, failed, cancelled, expired.", many: true, example: "failed"},
			},
			reply: messages.BatchOutcome{}, stream: batchResults, media: mediaLines,
		},
		{
			method: "POST", path: "/v1/batches/" + run + "/cancel", id: "cancelBatch", needs: auth.Submit, tag: "batches", summary: "Cancel a batch",
			text: "No more lines are begun, and those that run are asked to stop.",
			body: Reason{}, optional: true, reply: messages.Batch{}, answer: cancelBatch,
		},
		{
			method: "POST", path: "/v1/batches/" + run + "/retry", id: "retryBatch", needs: auth.Submit, tag: "batches", summary: "Submit again what did not complete",
			text: "As a new batch, when the old one has ended.",
			body: BatchRetry{}, optional: true, reply: messages.Batch{}, waits: true, answer: retryBatch,
		},
		{
			method: "GET", path: "/v1/agents", id: "listAgents", needs: auth.Read, tag: "agents", summary: "List the agents",
			reply: AgentList{}, answer: listAgents,
		},
		{
			method: "GET", path: "/v1/agents/{name}", id: "getAgent", needs: auth.Read, tag: "agents", summary: "The definition of an agent",
			reply: messages.Definition{}, answer: getAgent,
		},
		{
			method: "GET", path: "/v1/sessions", id: "listSessions", needs: auth.Read, tag: "sessions", summary: "List the sessions, by name",
			reply: messages.SessionList{}, answer: listSessions,
		},
		{
			method: "GET", path: "/v1/sessions/{name}", id: "getSession", needs: auth.Read, tag: "sessions", summary: "The runs of a session",
			reply: messages.SessionStatus{}, answer: getSession,
		},
		{
			method: "DELETE", path: "/v1/sessions/{name}", id: "deleteSession", needs: auth.Submit, tag: "sessions", summary: "Forget a conversation",
			text:  "Its next run begins a new one. What its runs said stays in their logs until those are purged.",
			reply: messages.SessionStatus{}, answer: deleteSession,
		},
		{
			method: "POST", path: "/run-lite", id: "runLite", needs: auth.Submit, tag: "lite", summary: "Have a small task worked, and wait",
			text: "The agent run-lite works it with three file tools; all calls of a tenant share a folder and go on one at a time. The first " +
				"unknown tool, invalid argument, reply of another form or failure of a tool ends it with status 500 and its text as error. " +
				"A run that takes too long, or whose caller goes away, is cancelled. 429: too many calls wait. With stream=true the answer is " +
				"server-sent events, as of GET /v1/tasks/{id}/events?format=karl; what fails after the first of them is an event of type error.",
			query: []parameter{{name: "stream", text: "Give events as they come, instead of the answer.", kind: "boolean"}},
			body:  LiteRequest{}, reply: LiteReply{}, waits: true, answer: runLite, stream: streamLite, problem: asLite,
		},
	}, catalogOperations(), forkOperations(run), approvalOperations(), talkOperations(), feedbackOperations(), scheduleOperations(), deadOperations(), quotaOperations(), pauseOperations(run), laneOperations(), keyOperations(), logOperations(), statsOperations(run))
}
