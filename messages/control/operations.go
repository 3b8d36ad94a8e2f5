package control

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/erasure"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/messages/queue"
)

// Empty is a request that says nothing.
type Empty struct{}

// Name is the subject without its prefix, such as schedules.pause: the action of the event acted.
func (o *Operation) Name() string { return strings.TrimPrefix(o.Subject, "longshore.") }

// by is the header that says who makes a change.
func by() Parameter {
	return Parameter{Name: HeaderBy, Text: "Who makes the change; it is stored with it."}
}

// only makes a change one of a revision.
func only(name string) Parameter {
	return Parameter{Name: name, Text: "Make the change only if this is the newest; 0: only if there is none.", Kind: "integer"}
}

// limit is how many a list has at most.
func limit(most, standard int, text string) Parameter {
	return Parameter{Name: "limit", Text: text, Kind: "integer", Most: most, Default: standard}
}

func list(p ...Parameter) []Parameter { return p }

// filter is which runs are meant.
func filter() []Parameter {
	statuses := []string{"queued", "running", "waiting", "completed", "failed", "cancelled"}
	return []Parameter{
		{Name: "status", Text: "Only these: queued, running, waiting, completed, failed, cancelled.", Many: true, Example: "failed", OneOf: statuses},
		{Name: "agent", Text: "Only runs of this agent."},
		{Name: "session", Text: "Only runs of this conversation."},
		{Name: "parent", Text: "Only runs to which this run delegated.", NotID: "must be the id of a task"},
		{Name: "label", Text: "Only runs with this label, as key=value.", Many: true, Example: "team=search"},
		{Name: "since", Text: "Only runs with an event since this time, and queued ones submitted since; by default the last 24 hours.", Kind: "date-time", Ago: 24 * time.Hour},
		{Name: "q", Text: "Only runs with this text in id, input, error or result, ignoring case.", Example: "invoice", Longest: maxSearch},
		{Name: "code", Text: "Only runs that failed for this reason.", Example: "tool_failed"},
		{Name: "until", Text: "Only runs that were submitted before this time.", Kind: "date-time"},
	}
}

// filtered is where the fields of a RunsRequest stand, and others.
func filtered(others map[string]string) map[string]string {
	fields := map[string]string{
		"statuses": "query:status", "agent": "query", "sessionId": "query:session", "parent": "query", "labels": "query:label", "since": "query",
		"search": "query:q", "code": "query", "until": "query", "id": "none", "prefix": "none", "count": "none",
	}
	maps.Copy(fields, others)
	return fields
}

const (
	oneRun      = "/v1/tasks/{id}"
	oneBatch    = "/v1/batches/{id}"
	oneSession  = "/v1/sessions/{name}"
	oneWork     = "/v1/workspaces/{name}"
	oneMemory   = "/v1/memory/{name}"
	oneItem     = "/v1/memory/{name}/items/{id}"
	oneAgent    = "/v1/agents/{name}"
	onePrompt   = "/v1/prompts/{id}"
	oneSchedule = "/v1/schedules/{name}"
	oneLetter   = "/v1/dead-letters/{seq}"
	oneQuota    = "/v1/quotas/{kind}/{name}"
)

func runs() []Operation {
	return []Operation{
		{
			Subject: SubjectSubmit, Asks: messages.Task{}, Reply: SubmitReply{}, Tenants: true, Failures: failures(idTaken()),
			Said: "Submit a task; the same task under the same id is one run",
			ID:   "submitTask", Tag: "tasks", Summary: "Submit a task", Needs: Submit, Method: "POST", Path: "/v1/tasks",
			Text: "The task is stored when this returns; then it ends in exactly one terminal state, or visibly waits for something. " +
				"The same task with the same id, or with the same Idempotency-Key, may be sent again: it is one run. " +
				"429: a quota of the tenant is used up; Retry-After says when to try again.",
			Headers: list(
				Parameter{Name: HeaderIdempotency, Text: "Becomes the id of a task that has none."},
				Parameter{Name: messages.HeaderTraceparent, Text: "Becomes the traceparent of a task that has none: the run is in that trace."},
			),
			Query: list(Parameter{Name: "wait", Text: "How long to wait for the result, at most 60s.", Kind: "duration", Example: "30s"}),
			Body:  messages.Task{}, Shows: Submitted{}, Status: 202, Also: 200, Waits: true,
		},
		{
			Asks: CancelRuns{}, Reply: BulkCancel{},
			ID: "cancelTasks", Tag: "tasks", Summary: "Cancel all matching runs", Needs: Submit, Method: "POST", Path: "/v1/tasks:cancel",
			Query: filter(), Body: Reason{}, Optional: true,
			Fields: filtered(map[string]string{"limit": "none", "after": "none", "by": "none"}),
		},
		{Subject: SubjectVerify, Summary: "Check whether an id belongs to this task", Asks: VerifyRequest{}, Reply: SubmitReply{}, Tenants: true, Failures: failures(idTaken())},
		{
			Subject: SubjectStatus, Asks: RunRequest{}, Reply: RunStatus{}, Tenants: true, Failures: failures(noRun()),
			Said: "Get the status of a run",
			ID:   "getTask", Tag: "tasks", Summary: "Get the status of a run, and its result", Needs: Read, Method: "GET", Path: oneRun, Shows: TaskState{},
		},
		{
			Subject: SubjectResult, Asks: ResultRequest{}, Reply: messages.AgentResult{}, Tenants: true,
			Failures: failures(noRun(), conflict(ErrNotEnded, "The run has not ended.")),
			ID:       "getResult", Tag: "tasks", Summary: "Get the result of a run that has ended", Needs: Read, Method: "GET", Path: oneRun + "/result",
			Query: list(
				Parameter{Name: "transcript", Text: "Include the conversation of the run, in pages.", Kind: "boolean"},
				Parameter{Name: "after", Text: "Continue after this message: transcript.next of the previous page.", Example: "42.1"},
				Parameter{Name: "format", Text: "task-result: status, outputs, summary and the stored log entries instead, as in the schema task-result.", Example: "task-result"},
			),
			Fields: map[string]string{"wait": "none"},
		},
		{
			Subject: SubjectLog, Asks: LogRequest{}, Reply: LogPage{}, Tenants: true,
			Failures: failures(noRun(), conflict(ErrNotBegun, "The run is queued and has no log yet.")),
			Said:     "Get the log of a run, in pages",
			ID:       "getLog", Tag: "tasks", Summary: "Get the log of a run", Needs: Read, Method: "GET", Path: oneRun + "/log",
			Text: "Entries as they are stored, oldest first: what `longshore replay` reads.",
			Query: list(
				Parameter{Name: "after", Text: "Only entries with a higher sequence: that of the last entry of the previous page.", Kind: "integer"},
				limit(1000, 100, "Maximum number of entries: up to 1000, 100 by default."),
			),
			Fields: map[string]string{"offset": "none"},
		},
		{
			Subject: SubjectCheck, Asks: RunRequest{}, Reply: RunCheck{}, Tenants: true,
			Failures: failures(noRun(), conflict(ErrNotBegun, "The run is queued and has no log yet."), checkBusy(), checkLong(), noCheck()),
			ID:       "checkTask", Tag: "tasks", Summary: "Check whether today's code decides as the run did", Needs: Read, Method: "GET", Path: oneRun + "/check",
			Text: "Folds the log and plans again at every point where a worker decided, with the code of the dispatcher that answers. It calls no model and no tool, and " +
				"changes nothing. `difference` is the first decision that would be another one; without it, `decisions` were the same.",
		},
		{
			Subject: SubjectCancel, Asks: CancelRequest{}, Reply: RunStatus{}, Tenants: true,
			Failures: failures(noRun(), conflict(ErrEnded, "The run has ended.")),
			ID:       "cancelTask", Tag: "tasks", Summary: "Cancel a run", Needs: Submit, Method: "POST", Path: oneRun + "/cancel",
			Text: "The request is recorded when this returns; a run that was only queued has ended by then.",
			Body: Reason{}, Optional: true, Fields: map[string]string{"by": "none"},
		},
		{
			Subject: SubjectFork, Asks: ForkRequest{}, Reply: ForkReply{}, Tenants: true, Audited: true,
			Failures: failures(noRun(), conflict(ErrConflict, "The new id is taken, or the run has not begun.")),
			ID:       "forkTask", Tag: "tasks", Summary: "Fork a run: start a new one from its first steps", Needs: Submit, Method: "POST", Path: oneRun + "/fork",
			Text: "The new run starts with the steps before `at` and repeats that step, with another agent or model if the body names one. With `call` it keeps that step too, until the call waited for a person, and asks again. It has " +
				"the files that were saved in the steps that it keeps. It is stored when this returns; the same fork with the same `newId` is one run.",
			Body: Fork{}, Status: 202, Location: oneRun,
		},
		{
			Subject: SubjectWhy, Asks: RunRequest{}, Reply: Why{}, Tenants: true,
			Failures: failures(noRun()),
			ID:       "whyTask", Tag: "tasks", Summary: "Get what a run is waiting for or doing", Needs: Read, Method: "GET", Path: oneRun + "/why",
		},
		{
			Subject: SubjectRunSteps, Asks: RunRequest{}, Reply: StepList{}, Tenants: true,
			Failures: failures(noRun(), noIndex()),
			ID:       "taskSteps", Tag: "tasks", Summary: "List the steps of a run, with their duration and cost", Needs: Read, Method: "GET", Path: oneRun + "/steps",
			Text: "At most 1000.",
		},
		{
			Subject: SubjectFiles, Asks: FilesRequest{}, Reply: FileList{}, Tenants: true,
			Failures: failures(noFile(), conflict(ErrNotBegun, "The run is queued and has no files yet.")),
			ID:       "listFiles", Tag: "tasks", Summary: "List the files of a run", Needs: Read, Method: "GET", Path: oneRun + "/files",
			Text: "As they were after a step; the last ones by default. Without saved files the list is empty.",
			Query: list(
				Parameter{Name: "step", Text: "The files as they were after this step; 0: before the first.", Kind: "integer"},
				Parameter{Name: "manifest", Text: "In place of a step: the `manifest` of an earlier list or of the result."},
				Parameter{Name: "after", Text: "Only files after this name: the `next` of the previous page."},
				limit(MaxFiles, MaxFiles, "Maximum number of files: up to 1000, which is the default."),
			),
		},
		{Subject: SubjectFile, Summary: "Read a part of a file of a run", Asks: FileRequest{}, Reply: FilePart{}, Tenants: true, Failures: failures(noFile(), conflict(ErrNotBegun, "The run is queued and has no files yet."))},
	}
}

func uploads() []Operation {
	return []Operation{
		{
			Subject: SubjectMissing, Asks: MissingRequest{}, Reply: MissingReply{}, Tenants: true,
			ID: "missingFiles", Tag: "files", Summary: "Ask which contents must be uploaded", Needs: Submit, Method: "POST", Path: "/v1/files:missing",
			Text: "Contents are named by the SHA-256 of their bytes, and each tenant has its own. Those that are not missing stay for half an hour at " +
				"least, within which a task may refer to them.",
			Body: Hashes{},
		},
		{
			Subject: SubjectUpload, Asks: UploadRequest{}, Reply: UploadReply{}, Tenants: true, Failures: failures(uploadsFull()),
			ID: "uploadFiles", Tag: "files", Summary: "Upload contents", Needs: Submit, Method: "POST", Path: "/v1/files",
			Text: "Many small ones at once, as base64. What is stored already costs nothing. A content that no run refers to is removed after an hour.",
			Body: Contents{},
		},
		{
			Subject: SubjectUploadPart, Summary: "Upload a part of a content", Asks: PartRequest{}, Reply: PartReply{}, Tenants: true,
			Failures: failures(conflict(ErrNoUpload, "There is no such upload, it has taken too long, or the part does not fit it."), uploadsFull()),
		},
	}
}

func people() []Operation {
	once := list(Parameter{Name: HeaderIdempotency, Text: "The same decision with the same key counts once; repeating it succeeds."})
	return []Operation{
		{
			Subject: SubjectSteer, Asks: SteerRequest{}, Reply: RunStatus{}, Tenants: true,
			Failures: failures(noRun(), conflict(ErrNotSteered, "The run has not begun, has ended or has 100 messages, or the id is that of another message.")),
			ID:       "steerTask", Tag: "tasks", Summary: "Send a message to a run", Needs: Submit, Method: "POST", Path: oneRun + "/steer",
			Text: "The model reads it before its next call. Nothing in progress is aborted, and a waiting run keeps waiting. A run takes at most " +
				"100 messages.",
			Headers: list(Parameter{Name: HeaderIdempotency, Text: "The same message with the same key counts once; repeating it succeeds."}),
			Body:    Steer{}, Fields: map[string]string{"control": "body:id"},
		},
		{
			Subject: SubjectFeedback, Asks: FeedbackRequest{}, Reply: Feedback{}, Tenants: true,
			Failures: failures(noRun(), conflict(ErrConflict, "The id is that of other feedback.")),
			ID:       "giveFeedback", Tag: "tasks", Summary: "Store feedback on a run", Needs: Submit, Method: "POST", Path: oneRun + "/feedback",
			Text:    "The run may still be running or have ended; it does not change. Feedback is kept as long as events.",
			Headers: list(Parameter{Name: HeaderIdempotency, Text: "The same feedback with the same key is stored once; repeating it succeeds."}),
			Body:    Opinion{}, Fields: map[string]string{"control": "body:id"},
		},
		{
			Subject: SubjectFeedbackList, Asks: RunRequest{}, Reply: FeedbackList{}, Tenants: true,
			ID: "listFeedback", Tag: "tasks", Summary: "List the feedback on a run, newest first", Needs: Read, Method: "GET", Path: oneRun + "/feedback",
		},
		{
			Subject: SubjectApprovals, Asks: ApprovalsRequest{}, Reply: ApprovalList{}, Tenants: true,
			ID: "listApprovals", Tag: "approvals", Summary: "List the calls that wait for an approval", Needs: Read, Method: "GET", Path: "/v1/approvals",
			Query: list(limit(MaxApprovals, 100, "Maximum number of calls: up to 1000, 100 by default.")),
		},
		decision(SubjectApprove, "approve", "Approve a call that waits", once),
		decision(SubjectDeny, "deny", "Deny a call that waits", once),
		{
			Subject: SubjectAnswer, Asks: AnswerRequest{}, Reply: RunStatus{}, Tenants: true, Audited: true,
			Failures: failures(noRun(), decided()),
			ID:       "answerTask", Tag: "approvals", Summary: "Answer the question of a waiting run", Needs: Decide, Method: "POST", Path: oneRun + "/answers",
			Headers: once, Body: Reply{}, Fields: map[string]string{"control": "header:" + HeaderIdempotency},
		},
	}
}

// decision is one of the two that are made at one path.
func decision(subject, name, said string, once []Parameter) Operation {
	return Operation{
		Subject: subject, Asks: DecisionRequest{}, Reply: RunStatus{}, Tenants: true, Failures: failures(noRun(), decided()),
		Said: said,
		ID:   "decideApproval", Tag: "approvals", Summary: "Approve or deny a call that waits", Needs: Decide, Method: "POST", Path: oneRun + "/approvals",
		Text: "The first decision counts; a later one is a conflict that says who was first. A call whose approval is `editable` may be approved with other " +
			"`arguments`: the tool is called with those.",
		Headers: once, Body: Verdict{}, Fixed: map[string]string{"decision": name}, Fields: map[string]string{"control": "header:" + HeaderIdempotency},
	}
}

func sessions() []Operation {
	return []Operation{
		{
			Subject: SubjectSessions, Asks: SessionRequest{}, Reply: SessionList{}, Tenants: true,
			ID: "listSessions", Tag: "sessions", Summary: "List the sessions, by name", Needs: Read, Method: "GET", Path: "/v1/sessions",
			Fields: map[string]string{"name": "none"},
		},
		{
			Subject: SubjectSession, Asks: SessionRequest{}, Reply: SessionStatus{}, Tenants: true,
			Failures: failures(noSession()),
			ID:       "getSession", Tag: "sessions", Summary: "Get a session and its runs", Needs: Read, Method: "GET", Path: oneSession,
		},
		{
			Subject: SubjectSessionDelete, Asks: SessionRequest{}, Reply: SessionStatus{}, Tenants: true, Audited: true,
			Failures: failures(noSession(), conflict(ErrSessionBusy, "The session has runs that have not ended."), memoryAway()),
			ID:       "deleteSession", Tag: "sessions", Summary: "Forget a conversation", Needs: Submit, Method: "DELETE", Path: oneSession,
			Text: "The next run of the session starts a new one, and what long-term memory holds of this session alone is removed. The logs of its runs stay until they are purged.",
		},
	}
}

func workspaces() []Operation {
	return []Operation{
		{
			Subject: SubjectWorkspaces, Asks: WorkspaceRequest{}, Reply: WorkspaceList{}, Tenants: true,
			ID: "listWorkspaces", Tag: "workspaces", Summary: "List the named workspaces, by name", Needs: Read, Method: "GET", Path: "/v1/workspaces",
			Fields: map[string]string{"name": "none"},
		},
		{
			Subject: SubjectWorkspace, Asks: WorkspaceRequest{}, Reply: WorkspaceStatus{}, Tenants: true,
			Failures: failures(noWorkspace()),
			ID:       "getWorkspace", Tag: "workspaces", Summary: "Get a named workspace: its files, and which run has it", Needs: Read, Method: "GET", Path: oneWork,
		},
		{
			Subject: SubjectWorkspaceDelete, Asks: WorkspaceRequest{}, Reply: WorkspaceStatus{}, Tenants: true, Audited: true,
			Failures: failures(noWorkspace(), conflict(ErrBusy, "A run has the workspace.")),
			ID:       "deleteWorkspace", Tag: "workspaces", Summary: "Remove the files of a named workspace", Needs: Submit, Method: "DELETE", Path: oneWork,
			Text: "The next run in the workspace begins without files. The runs that have worked in it keep theirs until they are purged.",
		},
		{
			Subject: SubjectWorkspaceFiles, Asks: WorkspaceFilesRequest{}, Reply: FileList{}, Tenants: true,
			Failures: failures(noWorkspaceFile()),
			ID:       "listWorkspaceFiles", Tag: "workspaces", Summary: "List the files of a named workspace", Needs: Read, Method: "GET", Path: "/v1/workspaces/{workspace}/files",
			Text: "Those that the next run there begins with. What a run that has the workspace now has changed is among its own files.",
			Query: list(
				Parameter{Name: "manifest", Text: "The `manifest` of the page before: 404 if the workspace has other files by now."},
				Parameter{Name: "after", Text: "Only files after this name: the `next` of the previous page."},
				limit(MaxFiles, MaxFiles, "Maximum number of files: up to 1000, which is the default."),
			),
		},
		{
			Subject: SubjectWorkspaceFile, Summary: "Read a part of a file of a named workspace", Asks: WorkspaceFileRequest{}, Reply: FilePart{}, Tenants: true,
			Failures: failures(noWorkspaceFile()),
		},
	}
}

// memories are about long-term memory.
func memories() []Operation {
	scope := func(more ...Parameter) []Parameter {
		return append(list(
			Parameter{Name: "agent", Text: "Only items of this agent."},
			Parameter{Name: "session", Text: "Only items of this conversation."},
			Parameter{Name: "subject", Text: "Only items about this person or thing.", Longest: memory.MaxSubject},
			Parameter{Name: "tag", Text: "Only items with this tag.", Many: true, Example: "invoice"},
		), more...)
	}
	return []Operation{
		{
			Subject: memory.SubjectCollections, Asks: memory.CollectionsRequest{}, Reply: memory.Collections{}, Tenants: true,
			Failures: failures(noMemory(), memoryAway()),
			ID:       "listCollections", Tag: "memory", Summary: "List the collections of long-term memory, by name", Needs: Read, Method: "GET", Path: "/v1/memory",
			Text: "At most 1000.",
		},
		{
			Subject: memory.SubjectList, Asks: memory.ListRequest{}, Reply: memory.Page{}, Tenants: true,
			Failures: failures(noMemory(), memoryAway()),
			ID:       "listItems", Tag: "memory", Summary: "List the items of a collection, newest first", Needs: Read, Method: "GET", Path: oneMemory + "/items",
			Text: "A page may have fewer items than asked for. A collection that has nothing is empty.",
			Query: scope(
				Parameter{Name: "whole", Text: "Texts as they are; else their first 200 bytes.", Kind: "boolean"},
				limit(memory.MaxList, memory.DefaultList, "Maximum number of items: up to 1000, 100 by default."),
				Parameter{Name: "after", Text: "Continue after this place: `next` of the previous page."},
			),
			Fields: map[string]string{"tags": "query:tag"},
		},
		{
			Subject: memory.SubjectGet, Asks: memory.ItemRequest{}, Reply: memory.Item{}, Tenants: true,
			Failures: failures(noItem(), noMemory(), memoryAway()),
			ID:       "getItem", Tag: "memory", Summary: "Get an item of a collection", Needs: Read, Method: "GET", Path: oneItem,
		},
		{
			Subject: memory.SubjectSearch, Asks: memory.SearchRequest{}, Reply: memory.Found{}, Tenants: true,
			Failures: failures(noMemory(), memoryAway()),
			ID:       "searchItems", Tag: "memory", Summary: "Find the items of a collection that fit best", Needs: Read, Method: "GET", Path: oneMemory + "/search",
			Text: "By words, and by meaning where the dispatcher has a model for vectors. `degraded` says what was left out.",
			Query: scope(
				Parameter{Name: "q", Text: "What to search for, in words or as a question.", Example: "who pays for demurrage", Longest: memory.MaxQuestion},
				Parameter{Name: "topK", Text: "Maximum number of items: up to 100, 10 by default.", Kind: "integer", Most: memory.MaxTopK, Default: memory.DefaultTopK},
			),
			Fields: map[string]string{"tags": "query:tag", "text": "query:q"},
		},
		{
			Subject: memory.SubjectPut, Asks: memory.PutRequest{}, Reply: memory.PutReply{}, Tenants: true, Audited: true,
			Failures: failures(noMemory(), memoryAway(), memoryFull()),
			ID:       "putItems", Tag: "memory", Summary: "Store items in a collection, replacing those with their ids", Needs: Submit, Method: "PUT", Path: oneMemory + "/items",
			Text: "At most 256, as a whole or not at all. An item that is stored as it is stays untouched: the same request may be sent again.",
			Body: PutItems{}, Headers: list(by()), Fields: map[string]string{"by": "header:" + HeaderBy},
		},
		{
			Subject: memory.SubjectDelete, Asks: memory.DeleteRequest{}, Reply: memory.DeleteReply{}, Tenants: true, Audited: true,
			Failures: failures(noMemory(), memoryAway()),
			ID:       "deleteItems", Tag: "memory", Summary: "Remove items of a collection", Needs: Submit, Method: "DELETE", Path: oneMemory + "/items",
			Text:  "At most 1000. Those that are not there are not counted.",
			Query: list(Parameter{Name: "id", Text: "The id of an item.", Many: true, Example: "note-17"}), Fields: map[string]string{"ids": "query:id"},
		},
	}
}

// data are about all that is kept of a tenant, a session or a person.
func data() []Operation {
	scope := list(
		Parameter{Name: "session", Text: "Only what is of this conversation."},
		Parameter{Name: "subject", Text: "Only what is about this person: runs whose task has the label subject, and items of long-term memory.", Longest: erasure.MaxSubject, Example: "customer-17"},
		Parameter{Name: "after", Text: "Continue after this place: `next` of the previous page."},
	)
	return []Operation{
		{
			Subject: erasure.SubjectFind, Asks: erasure.FindRequest{}, Reply: erasure.Kept{}, Tenants: true,
			Failures: failures(memoryAway()),
			ID:       "findData", Tag: "data", Summary: "Find what is kept of a tenant, a conversation or a person", Needs: ManageData, Method: "GET", Path: "/v1/data",
			Text:  "With neither `session` nor `subject` it is all of the tenant. What is not of runs is counted on the last page.",
			Query: scope,
		},
		{
			Subject: erasure.SubjectErase, Asks: erasure.EraseRequest{}, Reply: erasure.Kept{}, Tenants: true, Audited: true,
			Failures: failures(memoryAway()),
			ID:       "eraseData", Tag: "data", Summary: "Erase what is kept of a tenant, a conversation or a person", Needs: ManageData, Method: "DELETE", Path: "/v1/data",
			Text: "Runs that have not ended stay. Continue with `after` until there is no `next`; the request may be made again. The last page of a whole " +
				"tenant destroys its key, unless runs are left.",
			Query: append(slices.Clone(scope),
				Parameter{Name: "keepKey", Text: "Do not destroy the key of the tenant.", Kind: "boolean"},
				Parameter{Name: "confirm", Text: "Must be true.", Kind: "boolean", Must: "erasing cannot be undone"},
			),
		},
	}
}

func batches() []Operation {
	return []Operation{
		{Subject: SubjectBatchOpen, Summary: "Open a batch, or continue one", Asks: BatchOpen{}, Reply: messages.Batch{}, Failures: failures(conflict(ErrConflict, "The id is that of another batch."))},
		{Subject: SubjectBatchSeal, Summary: "Seal a batch once all its lines are stored", Asks: BatchSeal{}, Reply: messages.Batch{}, Audited: true, Failures: failures(noBatch(), conflict(ErrConflict, "The batch has other lines, or another client submits it."))},
		{
			Subject: SubjectBatchList, Asks: BatchListRequest{}, Reply: BatchList{}, Tenants: true,
			ID: "listBatches", Tag: "batches", Summary: "List batches, newest first", Needs: Read, Method: "GET", Path: "/v1/batches",
			Query: list(limit(200, 100, "Maximum number of batches: up to 200, 100 by default.")),
		},
		{
			Subject: SubjectBatchStatus, Asks: RunRequest{}, Reply: messages.Batch{}, Tenants: true,
			Failures: failures(noBatch()),
			ID:       "getBatch", Tag: "batches", Summary: "Get the status of a batch", Needs: Read, Method: "GET", Path: oneBatch,
		},
		{
			Subject: SubjectBatchCancel, Asks: CancelRequest{}, Reply: messages.Batch{}, Tenants: true, Audited: true,
			Failures: failures(noBatch(), conflict(ErrEnded, "The batch has ended.")),
			ID:       "cancelBatch", Tag: "batches", Summary: "Cancel a batch", Needs: Submit, Method: "POST", Path: oneBatch + "/cancel",
			Text: "No further lines are submitted, and running ones are asked to stop.",
			Body: Reason{}, Optional: true, Fields: map[string]string{"by": "none"},
		},
		{
			Asks: RetryRequest{}, Reply: messages.Batch{},
			Failures: failures(noBatch(), conflict(ErrNotEnded, "The old batch has not ended.")),
			ID:       "retryBatch", Tag: "batches", Summary: "Submit the lines that did not complete again", Needs: Submit, Method: "POST", Path: oneBatch + "/retry",
			Text: "They become a new batch. The old one must have ended.",
			Body: BatchRetry{}, Optional: true, Waits: true, Fields: map[string]string{"batch": "path:id", "id": "body"},
		},
	}
}

func agents() []Operation {
	return []Operation{
		{
			Asks: Empty{}, Reply: AgentList{},
			ID: "listAgents", Tag: "agents", Summary: "List the agents", Needs: Read, Method: "GET", Path: "/v1/agents",
		},
		{
			Asks: AgentRequest{}, Reply: messages.Definition{}, Failures: failures(noAgent()),
			ID: "getAgent", Tag: "agents", Summary: "Get the definition of an agent", Needs: Read, Method: "GET", Path: oneAgent, AnyName: true,
		},
		{
			Subject: SubjectAgentApply, Asks: AgentApply{}, Reply: AgentApplied{},
			Failures: failures(moved()),
			ID:       "applyAgent", Tag: "agents", Summary: "Store an agent", Needs: Author, Method: "PUT", Path: oneAgent,
			Text:    "New runs use it within two seconds; runs that have started keep their definition.",
			Headers: list(by()), Query: list(only("ifRevision")), Body: messages.Definition{}, Unprefixed: "agent",
			Fields: map[string]string{"agent": "whole", "ifRevision": "query", "by": "header:" + HeaderBy},
		},
		{
			Subject: SubjectAgentValidate, Asks: AgentText{}, Reply: AgentVerdict{},
			ID: "validateAgent", Tag: "agents", Summary: "Check an agent without storing it", Needs: Read, Method: "POST", Path: "/v1/agents:validate",
			Text: "The text is YAML or JSON, as `longshore agents apply` or `applyAgent` takes it. A mistake names its line. What the caller may not " +
				"store is a mistake too. With `format` the answer has the same agent as a YAML file, which may stand in the agents folder.",
			Body: AgentText{},
		},
		{
			Subject: SubjectAgentDelete, Asks: CatalogDelete{}, Reply: Change{},
			Failures: failures(noAgent(), moved()),
			ID:       "deleteAgent", Tag: "agents", Summary: "Remove an agent", Needs: Administer, Method: "DELETE", Path: oneAgent,
			Headers: list(by()), Query: list(only("ifRevision")),
		},
		{
			Subject: SubjectAgentHistory, Asks: CatalogRequest{}, Reply: History{},
			Failures: failures(noAgent()),
			ID:       "listAgentRevisions", Tag: "agents", Summary: "List the revisions of an agent: who changed it, and when", Needs: Read, Method: "GET", Path: oneAgent + "/revisions",
			Fields: map[string]string{"revision": "none"},
		},
		{
			Subject: SubjectAgentGet, Asks: CatalogRequest{}, Reply: AgentRevision{},
			Failures: failures(noAgent()),
			ID:       "getAgentRevision", Tag: "agents", Summary: "Get a revision of an agent", Needs: Read, Method: "GET", Path: oneAgent + "/revisions/{revision}",
			Text: "`latest` stands for the newest revision.", Newest: true,
		},
	}
}

func prompts() []Operation {
	return []Operation{
		{
			Subject: SubjectPromptList, Asks: PromptFilter{}, Reply: PromptList{},
			ID: "listPrompts", Tag: "prompts", Summary: "List the prompts, without their texts", Needs: Read, Method: "GET", Path: "/v1/prompts",
			Query: list(Parameter{Name: "tag", Text: "Only those with this tag."}, Parameter{Name: "name", Text: "Only those whose id or name contains this."}),
		},
		{
			Subject: SubjectPromptValidate, Asks: messages.Prompt{}, Reply: PromptVerdict{},
			ID: "validatePrompt", Tag: "prompts", Summary: "Check a prompt without storing it", Needs: Read, Method: "POST", Path: "/v1/prompts:validate",
			Body: messages.Prompt{},
		},
		{
			Subject: SubjectPromptGet, Asks: CatalogRequest{}, Reply: messages.Prompt{},
			Failures: failures(noPrompt()),
			ID:       "getPrompt", Tag: "prompts", Summary: "Get a prompt", Needs: Read, Method: "GET", Path: onePrompt,
			Query:  list(Parameter{Name: "version", Text: "The version to get; by default the newest.", Kind: "integer"}),
			Fields: map[string]string{"name": "path:id", "revision": "query:version"},
		},
		{
			Subject: SubjectPromptPut, Asks: PromptPut{}, Reply: messages.Prompt{},
			Failures: failures(moved()),
			ID:       "putPrompt", Tag: "prompts", Summary: "Store a new version of a prompt", Needs: Author, Method: "PUT", Path: onePrompt,
			Headers: list(by()), Query: list(only("ifVersion")), Body: messages.Prompt{}, Unprefixed: "prompt", Author: "author",
			Fields: map[string]string{"prompt": "whole", "ifVersion": "query"},
		},
		{
			Subject: SubjectPromptDelete, Asks: CatalogDelete{}, Reply: Change{},
			Failures: failures(noPrompt(), moved()),
			ID:       "deletePrompt", Tag: "prompts", Summary: "Remove a prompt", Needs: Administer, Method: "DELETE", Path: onePrompt,
			Headers: list(by()), Query: list(only("ifVersion")), Fields: map[string]string{"name": "path:id", "ifRevision": "query:ifVersion"},
		},
		{
			Subject: SubjectPromptHistory, Asks: CatalogRequest{}, Reply: History{},
			Failures: failures(noPrompt()),
			ID:       "listPromptVersions", Tag: "prompts", Summary: "List the versions of a prompt: who changed it, and when", Needs: Read, Method: "GET", Path: onePrompt + "/versions",
			Fields: map[string]string{"name": "path:id", "revision": "none"},
		},
		{
			Subject: SubjectPromptRender, Asks: PromptRender{}, Reply: PromptRendered{},
			Failures: failures(noPrompt()),
			ID:       "renderPrompt", Tag: "prompts", Summary: "Render a prompt", Needs: Read, Method: "POST", Path: onePrompt + "/render",
			Body: RenderRequest{}, Optional: true,
		},
	}
}

func schedules() []Operation {
	return []Operation{
		{
			Subject: SubjectScheduleList, Asks: ScheduleRequest{}, Reply: ScheduleList{}, Tenants: true,
			ID: "listSchedules", Tag: "schedules", Summary: "List the schedules, by name", Needs: Read, Method: "GET", Path: "/v1/schedules",
			Fields: map[string]string{"name": "none", "by": "none"},
		},
		{
			Subject: SubjectScheduleGet, Asks: ScheduleRequest{}, Reply: ScheduleStatus{}, Tenants: true,
			Failures: failures(noPlan()),
			ID:       "getSchedule", Tag: "schedules", Summary: "Get a schedule, its next occurrences and the last one", Needs: Read, Method: "GET", Path: oneSchedule, Fields: map[string]string{"by": "none"},
		},
		{
			Subject: SubjectSchedulePut, Asks: SchedulePut{}, Reply: ScheduleApplied{}, Tenants: true, Audited: true,
			Failures: failures(conflict(nil, "It was changed since the revision that the change is for, or the tenant has 1000 schedules.")),
			ID:       "putSchedule", Tag: "schedules", Summary: "Store a schedule", Needs: Operate, Method: "PUT", Path: oneSchedule,
			Text:    "The task is submitted at each occurrence, as a run whose id consists of the name of the schedule and the time.",
			Headers: list(by()), Query: list(only("ifRevision")), Body: Schedule{}, Unprefixed: "schedule",
			Fields: map[string]string{"schedule": "whole", "ifRevision": "query", "by": "header:" + HeaderBy},
		},
		{
			Subject: SubjectScheduleDelete, Asks: ScheduleRequest{}, Reply: ScheduleStatus{}, Tenants: true, Audited: true,
			Failures: failures(noPlan()),
			ID:       "deleteSchedule", Tag: "schedules", Summary: "Remove a schedule", Needs: Operate, Method: "DELETE", Path: oneSchedule,
			Text: "Its runs continue.", Fields: map[string]string{"by": "none"},
		},
		{
			Subject: SubjectSchedulePause, Asks: ScheduleRequest{}, Reply: ScheduleStatus{}, Tenants: true, Audited: true,
			Failures: failures(noPlan()),
			ID:       "pauseSchedule", Tag: "schedules", Summary: "Pause a schedule until it is resumed", Needs: Operate, Method: "POST", Path: oneSchedule + "/pause",
			Headers: list(by()),
		},
		{
			Subject: SubjectScheduleResume, Asks: ScheduleRequest{}, Reply: ScheduleStatus{}, Tenants: true, Audited: true,
			Failures: failures(noPlan()),
			ID:       "resumeSchedule", Tag: "schedules", Summary: "Resume a schedule at its next occurrence", Needs: Operate, Method: "POST", Path: oneSchedule + "/resume",
			Headers: list(by()),
		},
		{
			Subject: SubjectScheduleRun, Asks: ScheduleRun{}, Reply: SubmitReply{}, Tenants: true, Audited: true,
			Failures: failures(noPlan(), conflict(ErrNotRun, "The last run has not ended and the schedule skips then, or the task was refused.")),
			ID:       "runSchedule", Tag: "schedules", Summary: "Submit the task of a schedule now", Needs: Operate, Method: "POST", Path: oneSchedule + "/run",
			Text:    "Also while it is paused. While its last run has not ended, `overlap` decides.",
			Headers: list(Parameter{Name: HeaderIdempotency, Text: "Becomes the id of the run: with the same key it is one run."}),
			Shows:   Submitted{}, Status: 202, Location: oneRun, Fields: map[string]string{"id": "header:" + HeaderIdempotency},
		},
	}
}

func deadLetters() []Operation {
	unaddressed := Parameter{Name: "unaddressed", Text: "Letters without a tenant, which are for the operator, instead of those of a tenant.", Kind: "boolean", NoTenant: true}
	filter := list(
		Parameter{Name: "kind", Text: "run, message or webhook.", Example: "webhook"},
		Parameter{Name: "agent", Text: "Only tasks of this agent."},
		Parameter{Name: "code", Text: "Only those with this error code.", Example: "poison"},
		Parameter{Name: "since", Text: "Only those stored since then.", Kind: "date-time", Example: "2026-01-02T15:04:05Z"},
		unaddressed,
		Parameter{Name: "after", Text: "Continue after this letter: `next` of the previous page.", Kind: "integer"},
	)
	bulk := append(slices.Clone(filter), limit(MaxDeadBulk, MaxDeadBulk, "Maximum number of letters: up to 50, which is the default."))
	return []Operation{
		{
			Subject: SubjectDeadList, Asks: DeadListRequest{}, Reply: DeadList{}, Tenants: true,
			ID: "listDeadLetters", Tag: "dead letters", Summary: "List dead letters, oldest first", Needs: Read, Method: "GET", Path: "/v1/dead-letters",
			Text:  "Tasks that cannot be worked, and webhooks that could not be delivered, without their bodies.",
			Query: append(slices.Clone(filter), limit(MaxDeadList, MaxDeadList, "Maximum number of letters: up to 100, which is the default.")),
		},
		{
			Subject: SubjectDeadShow, Asks: DeadRequest{}, Reply: DeadLetter{}, Tenants: true,
			Failures: failures(noLetter()),
			ID:       "getDeadLetter", Tag: "dead letters", Summary: "A dead letter with its body", Needs: Read, Method: "GET", Path: oneLetter,
			Query: list(unaddressed),
		},
		{
			Subject: SubjectDeadRedrive, Asks: DeadRedrive{}, Reply: DeadRedriven{}, Tenants: true, Audited: true,
			Failures: failures(noLetter(), conflict(ErrConflict, "The new id is that of another task.")),
			ID:       "redriveDeadLetter", Tag: "dead letters", Summary: "Send a dead letter again", Needs: Operate, Method: "POST", Path: oneLetter + "/redrive",
			Text: "A task becomes a new run, with the label redriven-from; a webhook is delivered again under its own id. The body, if " +
				"present, is the edited task. The letter is removed once the new run or delivery is stored; the request is safe to repeat.",
			Query: list(unaddressed, Parameter{Name: "newId", Text: "The id of the new run; by default it is derived from the letter."}),
			Body:  messages.Task{}, Optional: true, Unprefixed: "task",
			Fields: map[string]string{"task": "whole", "newId": "query", "unaddressed": "query"},
		},
		{
			Subject: SubjectDeadPurge, Asks: DeadRequest{}, Reply: DeadLetter{}, Tenants: true, Audited: true,
			Failures: failures(noLetter()),
			ID:       "purgeDeadLetter", Tag: "dead letters", Summary: "Remove a dead letter", Needs: Operate, Method: "DELETE", Path: oneLetter,
			Query: list(unaddressed),
		},
		{
			Subject: SubjectDeadRedriveAll, Asks: DeadListRequest{}, Reply: DeadBulk{}, Tenants: true, Audited: true,
			ID: "redriveDeadLetters", Tag: "dead letters", Summary: "Send all matching dead letters again", Needs: Operate, Method: "POST", Path: "/v1/dead-letters:redrive",
			Text: "Without a filter all letters match. A request handles 50: continue with `after` until there is no `next`.", Query: bulk,
		},
		{
			Subject: SubjectDeadPurgeAll, Asks: DeadListRequest{}, Reply: DeadBulk{}, Tenants: true, Audited: true,
			ID: "purgeDeadLetters", Tag: "dead letters", Summary: "Remove all matching dead letters", Needs: Operate, Method: "POST", Path: "/v1/dead-letters:purge",
			Text:  "Without a filter all letters match. A request handles 50: continue with `after` until there is no `next`.",
			Query: append(slices.Clone(bulk), Parameter{Name: "confirm", Text: "Must be true.", Kind: "boolean", Must: "purging cannot be undone"}),
		},
	}
}

func quotas() []Operation {
	return []Operation{
		{Subject: SubjectAdmit, Summary: "Ask whether a tenant may submit a task now", Asks: AdmitRequest{}, Reply: AdmitReply{}},
		{
			Subject: SubjectQuotaList, Asks: Empty{}, Reply: QuotaList{},
			ID: "listQuotas", Tag: "quotas", Summary: "List the quotas", Needs: ReadFleet, Method: "GET", Path: "/v1/quotas",
			Text: "Without their usage.",
		},
		{
			Subject: SubjectQuotaGet, Asks: queue.QuotaRef{}, Reply: QuotaState{},
			ID: "getQuota", Tag: "quotas", Summary: "Get a quota and its usage", Needs: ReadFleet, Method: "GET", Path: oneQuota,
			Text: "The kind is tenant, agent or provider. A quota that was never set has no limits and revision 0.", ETag: true,
		},
		{
			Subject: SubjectQuotaPut, Asks: QuotaPut{}, Reply: QuotaChange{}, Audited: true,
			Failures: failures(moved()),
			ID:       "putQuota", Tag: "quotas", Summary: "Set a quota, replacing the stored one", Needs: Administer, Method: "PUT", Path: oneQuota,
			Text:    "It takes effect within two seconds. A pause stays.",
			Headers: list(by()), Query: list(only("ifRevision")), Body: queue.Quota{}, Unprefixed: "quota", ETag: true, IfMatch: "ifRevision",
			Fields: map[string]string{"quota": "whole", "ifRevision": "query", "by": "header:" + HeaderBy},
		},
		{
			Subject: SubjectQuotaDelete, Asks: QuotaDelete{}, Reply: QuotaChange{}, Audited: true,
			Failures: failures(moved()),
			ID:       "deleteQuota", Tag: "quotas", Summary: "Remove all limits of a quota", Needs: Administer, Method: "DELETE", Path: oneQuota,
			Text: "A pause stays.", Headers: list(by()), Query: list(only("ifRevision")), ETag: true, IfMatch: "ifRevision",
		},
	}
}

func fleet() []Operation {
	return []Operation{
		{
			Subject: SubjectPauses, Asks: Empty{}, Reply: PauseList{},
			ID: "listPauses", Tag: "pauses", Summary: "List the pauses", Needs: ReadFleet, Method: "GET", Path: "/v1/pauses",
		},
		{
			Subject: SubjectPause, Asks: PauseRequest{}, Reply: PausedThing{}, Audited: true,
			Failures: failures(noAgent()),
			ID:       "pause", Tag: "pauses", Summary: "Pause a tenant, an agent or a provider", Needs: OperateFleet, Method: "POST", Path: "/v1/pauses",
			Text: "Within seconds its runs start no further step. Models of a paused provider are not called: runs fall back to " +
				"another model of their agent, or wait. Pausing something twice changes nothing.",
			Body: PauseRequest{},
		},
		{
			Subject: SubjectResume, Asks: PauseRequest{}, Reply: PausedThing{}, Audited: true,
			Failures: failures(notFound(ErrNotPaused, "It is not paused.")),
			ID:       "resume", Tag: "pauses", Summary: "End a pause", Needs: OperateFleet, Method: "DELETE", Path: "/v1/pauses/{kind}/{name}",
			Text:    "The reply is the pause that ended. The runs that it held back continue within seconds.",
			Headers: list(Parameter{Name: HeaderBy, Text: "Who ends the pause; it is stored with the change."}),
			Fields:  map[string]string{"reason": "none"},
		},
		{
			Subject: SubjectWorkers, Asks: Empty{}, Reply: WorkerList{},
			ID: "listWorkers", Tag: "workers", Summary: "List the workers that answer", Needs: ReadFleet, Method: "GET", Path: "/v1/workers",
			Text: "With how calls of models went on each: circuits, failures, times and limits.",
		},
		{
			Subject: SubjectTools, Asks: Empty{}, Reply: ToolList{},
			ID: "listTools", Tag: "workers", Summary: "List the tools that the workers offer, by name", Needs: ReadFleet, Method: "GET", Path: "/v1/tools",
			Text: "Descriptions are cut to 2 KiB. A worker with very many tools leaves schemas out, and one of an earlier version tells names alone.",
		},
		{
			Subject: SubjectWorkerDrain, Asks: WorkerDrain{}, Reply: messages.WorkerStatus{}, Audited: true,
			Failures: failures(notFound(ErrNoWorker, "No worker has this id or name."), conflict(ErrManyWorkers, "Several workers have the name: give the id of one.")),
			ID:       "drainWorker", Tag: "workers", Summary: "Drain a worker", Needs: OperateFleet, Method: "POST", Path: "/v1/workers/{id}/drain",
			Text:   "The worker takes no new runs, hands back its own after their current step, and ends. Its name may stand for the id if no other worker has that name.",
			Fields: map[string]string{"worker": "path:id"}, AnyName: true,
		},
		{
			Subject: SubjectLanes, Asks: LanesRequest{}, Reply: LaneList{},
			ID: "listLanes", Tag: "lanes", Summary: "List what is waiting in the queue, by tenant and priority", Needs: ReadFleet, Method: "GET", Path: "/v1/lanes",
			Text: "The lanes of all tenants: wake-ups first, then by priority, the fullest first; at most 1000.",
			Query: list(
				Parameter{Name: "of", Text: "Only the lanes of this tenant.", Example: "acme"},
				Parameter{Name: "all", Text: "Include empty lanes.", Kind: "boolean"},
			),
			Fields: map[string]string{"tenant": "query:of"},
		},
		{
			Subject: SubjectIndex, Asks: Empty{}, Reply: IndexStatus{},
			Failures: failures(noIndex()),
			ID:       "indexStatus", Tag: "tasks", Summary: "Get the state of the run index", Needs: ReadFleet, Method: "GET", Path: "/v1/index",
			Text: "It is that of the dispatcher that answers.",
		},
		{
			Subject: SubjectIndexRebuild, Asks: Empty{}, Reply: Empty{}, Audited: true, Everywhere: true, Failures: failures(noIndex()),
			ID: "rebuildIndex", Tag: "tasks", Summary: "Rebuild the run index from the events", Needs: OperateFleet, Method: "POST", Path: "/v1/index:rebuild",
			Text: "Every dispatcher does so. Lists and statistics lack runs until it is done; `GET /v1/index` tells how far it is.", Waits: true,
		},
	}
}

// keys are made where they are asked for, and only their hashes travel on: over HTTP that is in the dispatcher.
func keys() []Operation {
	return []Operation{
		{
			Asks: KeyOrder{}, Reply: NewKey{},
			ID: "createKey", Tag: "keys", Summary: "Make an API key", Needs: ManageKeys, Method: "POST", Path: "/v1/keys",
			Text: "The key is in the answer, and only there. It is limited to the tenant and the permissions of the caller.",
			Body: KeyOrder{}, Status: 201, Known: true, Fields: map[string]string{"tenant": "body"},
		},
		{Subject: SubjectKeyCreate, Summary: "Store the hash of a new API key", Asks: KeyCreate{}, Reply: APIKey{}, Audited: true, Untitled: true, Failures: failures(conflict(nil, "There is a key with this id."))},
		{
			Subject: SubjectKeyList, Asks: KeyListRequest{}, Reply: KeyList{},
			Said: "List the API keys, without the keys themselves",
			ID:   "listKeys", Tag: "keys", Summary: "List the API keys", Needs: ManageKeys, Method: "GET", Path: "/v1/keys",
			Text:  "Lists the keys of the tenant of the request; with a key for all tenants those of all, unless Longshore-Tenant names one. The keys themselves are not stored.",
			Known: true, OfAll: true,
		},
		{
			Subject: SubjectKeyRevoke, Asks: KeyRevoke{}, Reply: Change{}, Audited: true, Failures: failures(notFound(ErrNoKey, "There is no such key.")),
			ID: "revokeKey", Tag: "keys", Summary: "Revoke an API key", Needs: ManageKeys, Method: "DELETE", Path: "/v1/keys/{id}",
			Text:  "It is refused by every dispatcher within ten seconds.",
			Known: true, OfAll: true, AnyName: true, Missing: "no such key", Fields: map[string]string{"by": "none"},
		},
	}
}

// lists are read by clients, which put pages together.
func lists() []Operation {
	return []Operation{
		{Subject: SubjectQueued, Summary: "List the tasks that no worker has started, oldest first", Asks: QueuedRequest{}, Reply: QueuedList{}, Tenants: true},
		{
			Subject: SubjectEvents, Asks: EventsRequest{}, Reply: EventPage{}, Tenants: true,
			ID: "listEvents", Tag: "tasks", Summary: "List stored events of a tenant or a run, page by page", Needs: ManageKeys, Method: "GET", Path: "/v1/events",
			Text: "In the order in which they were stored. Of those stored a moment ago the newest may be missing: they are on a later page. They tell " +
				"who changed what and whose requests were denied, so only an admin may read them.",
			Query: list(
				Parameter{Name: "run", Text: "Only events of this run."},
				Parameter{Name: "since", Text: "Only events stored since then; not counted with after.", Kind: "date-time", Example: "2026-01-02T15:04:05Z"},
				Parameter{Name: "after", Text: "Continue after this place: `next` of the previous page.", Kind: "integer"},
				Parameter{Name: "position", Text: "In place of after where the previous page has one: its `position`."},
				limit(MaxEventPage, MaxEventPage, "Maximum number of events: up to 256, which is the default."),
			),
			Fields: map[string]string{"id": "query:run"},
		},
		{Subject: SubjectRuns, Summary: "List the runs that have started, newest first", Asks: RunsRequest{}, Reply: RunPage{}, Tenants: true, Failures: failures(noIndex())},
		{
			Asks: RunsRequest{}, Reply: RunList{},
			ID: "listTasks", Tag: "tasks", Summary: "List runs, newest first", Needs: Read, Method: "GET", Path: "/v1/tasks",
			Text: "Runs that no worker has started come first, including those that wait for their time: the next 10000; `moreQueued` says that there are more. " +
				"`behind` is how many events are not in the list yet.",
			Query: append(
				filter(), limit(1000, 100, "Maximum number of runs: up to 1000, 100 by default."),
				Parameter{Name: "after", Text: "Continue after this task: `next` of the previous page.", NotID: "must be the id of a task"},
			),
			Fields: filtered(map[string]string{"limit": "query", "after": "query"}),
		},
		{
			Subject: SubjectRunStats, Asks: StatsRequest{}, Reply: RunStats{}, Tenants: true, Failures: failures(noIndex()),
			ID: "runStats", Tag: "tasks", Summary: "Get statistics of runs", Needs: Read, Method: "GET", Path: "/v1/stats",
			Text:   "Counts, success, cost, tokens and times of the matching runs that have started. `behind` is how many events are not counted yet.",
			Query:  append(filter(), Parameter{Name: "by", Text: "Group runs by agent, model, code, day, hour, minute or status; tool groups tool calls.", Example: "agent"}),
			Fields: filtered(map[string]string{"limit": "none", "after": "none", "by": "query"}),
		},
	}
}
