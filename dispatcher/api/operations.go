package api

import (
	"slices"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// operations are all that can be asked for over HTTP: those of a table, and the streams.
func operations(ops control.Table) []operation {
	return slices.Concat(controlled(ops), streams())
}

// streams are the routes that are no request and reply, which alone are by hand: no value could say how their bodies and answers come.
//
//	watchTask     server-sent events, of AG-UI and Karl too
//	getLogs       a page, or server-sent events
//	submitBatch   a body of lines, answered while it is read
//	batchResults  an answer of lines
//	getFile       the bytes of a file, by ranges
//	putFile       a body of any kind, read part by part
//	runLite       waits for a run and streams it; its problems have a form of their own
//	getCaller     is about the request alone, and asks no other process
func streams() []operation {
	run := "{id}"
	return []operation{
		{
			method: "GET", path: "/v1/tasks/" + run + "/events", id: "watchTask", needs: control.Read, tag: "tasks", summary: "Follow a run",
			failures: failuresOf(control.SubjectStatus),
			text: "Server-sent events: all events of the run in order, each once, from the first or the one after Last-Event-ID, then live " +
				"until run_finished. The id of an event is its number in the run, its data a CloudEvents 1.0 event. The event error is named " +
				"run_error here, because EventSource calls a failed connection error. Lines that begin with a colon keep the connection " +
				"open. A run that has ended and has no more events for the client is a 204.",
			headers: []control.Parameter{{Name: "Last-Event-ID", Text: "The id of the last frame that the client received: the number of an event."}},
			query: []control.Parameter{
				{Name: "after", Text: "As Last-Event-ID, for clients that cannot set headers."},
				{Name: "types", Text: "Only events of these names. With error instead of run_error, that event keeps its old name for one more release.", Many: true, Example: "message_end,run_finished"},
				{Name: "format", Text: "ag-ui: events of the AG-UI protocol instead. karl: events of Karl's agent loop, in ten kinds.", Example: "ag-ui"},
				{
					Name: "children", Kind: "boolean",
					Text: "The events of all runs below it too, without ids: those of each run in order, each once, after the event delegated that names " +
						"it. The last event, tree_finished, comes when all of them have ended. A stream that was cut begins again.",
				},
				{Name: "deltas", Text: "Include replies while they are written, as events of type delta without an id. They are dropped for a slow client.", Kind: "boolean"},
			},
			reply: messages.Event{}, stream: watchTask, media: "text/event-stream",
		},
		{
			method: "POST", path: "/v1/batches", id: "submitBatch", needs: control.Submit, tag: "batches", summary: "Submit a batch",
			failures: failuresOf(control.SubjectBatchOpen),
			text: "The body is up to 100000 lines of JSON, each with a custom_id and the fields of a task. Nothing runs before the last line has been " +
				"read; an interrupted submission may be sent again with the same id, and each custom_id becomes one task. The reply is lines of JSON too: " +
				"invalid lines as they are read, and finally the batch, or the problem that ended the submission.",
			query: []control.Parameter{
				{Name: "id", Text: "Id of the batch, at most 36 characters; a new one by default."},
				{Name: "name", Text: "For people."},
				{Name: "maxCost", Text: "In US dollars; once they are spent, the rest is cancelled.", Example: "12.50"},
				{Name: "concurrency", Text: "How many of its tasks may be queued, running or waiting at once: 1 to 10000. No more than 1000, the default, are in progress.", Kind: "integer"},
				{Name: "expires", Text: "Lines that have not ended after this time are abandoned; 168h by default, at most 336h.", Kind: "duration", Example: "24h"},
				{Name: "skipInvalid", Text: "Skip invalid lines instead of running nothing.", Kind: "boolean"},
				{Name: "dryRun", Text: "Only report what would be submitted.", Kind: "boolean"},
				{Name: "webhook", Text: "URL that is called when the batch has ended.", Example: "https://hooks.example.com/longshore"},
				{Name: "webhookEvents", Text: "Only these ends: completed, failed, cancelled, expired.", Many: true, Example: "failed,expired"},
			},
			reply: dispatcher.BatchReport{}, stream: submitBatch, media: mediaLines, takes: mediaLines,
		},
		{
			method: "GET", path: "/v1/batches/" + run + "/results", id: "batchResults", needs: control.Read, tag: "batches", summary: "Get how the lines of a batch ended",
			failures: failuresOf(control.SubjectBatchStatus),
			text:     "Lines of JSON, one for each line that has ended so far.",
			query: []control.Parameter{
				{Name: "order", Text: "input, by default, or completion."},
				{Name: "status", Text: "Only these: completed, failed, cancelled, expired.", Many: true, Example: "failed"},
			},
			reply: messages.BatchOutcome{}, stream: batchResults, media: mediaLines,
		},
		{
			method: "POST", path: "/run-lite", id: "runLite", needs: control.Submit, tag: "lite", summary: "Run a small task and wait for it",
			text: "The agent run-lite works it with three file tools; all calls of a tenant share a folder and run one at a time. The first " +
				"unknown tool, invalid argument, malformed reply or failure of a tool ends it with status 500 and the reason as error. " +
				"A run that takes too long, or whose caller disconnects, is cancelled. 429: too many calls are waiting. With stream=true the answer is " +
				"server-sent events, as for GET /v1/tasks/{id}/events?format=karl; a failure after the first of them is an event of type error.",
			query: []control.Parameter{{Name: "stream", Text: "Stream events as they come instead of the answer.", Kind: "boolean"}},
			body:  LiteRequest{}, reply: LiteReply{}, waits: true, answer: runLite, stream: streamLite, problem: asLite,
		},
		getLogsOperation(),
		getFileOperation(),
		getWorkspaceFileOperation(),
		putFileOperation(),
		getCallerOperation(),
	}
}

// failuresOf are the failures of the operation that a request over HTTP becomes.
func failuresOf(subject string) []control.Failure { return control.Of(subject).Failures }
