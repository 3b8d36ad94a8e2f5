package control

import (
	"errors"

	"github.com/longshore-run/longshore/messages"
)

// What requests to a dispatcher mean when they fail. Clients in Go get these errors back, with the problem that says more.
var (
	ErrNotFound    = errors.New("no such run")
	ErrNoFile      = errors.New("no such file")
	ErrConflict    = errors.New("the id is taken by another task")
	ErrEnded       = errors.New("the run has ended")
	ErrNotEnded    = errors.New("the run has not ended")
	ErrNotBegun    = errors.New("the run has not begun")
	ErrCheckLong   = errors.New("the log is too long to be checked in a request: longshore replay RUN --check has no limit")
	ErrCheckBusy   = errors.New("the dispatcher is checking other runs: ask again")
	ErrNotSteered  = errors.New("not told")
	ErrDecided     = errors.New("not decided")
	ErrNoSession   = errors.New("no such session")
	ErrSessionBusy = errors.New("the session has runs that have not ended yet")
	ErrNoWorkspace = errors.New("no such workspace")
	ErrBusy        = errors.New("a run has the workspace")
	ErrNoBatch     = errors.New("no such batch")
	ErrNoSchedule  = errors.New("no such schedule")
	ErrNotRun      = errors.New("the schedule was not run")
	ErrNoLetter    = errors.New("no such dead letter")
	ErrNotPaused   = errors.New("it is not paused")
	ErrNoWorker    = errors.New("no such worker")
	ErrManyWorkers = errors.New("several workers have the name")
	ErrNoKey       = errors.New("no such API key")
	ErrNoIndex     = errors.New("the dispatcher has no index of runs: set LONGSHORE_INDEX")
	ErrNoMemory    = errors.New("the dispatcher has no long-term memory: set LONGSHORE_MEMORY as for the workers")
	ErrNoItem      = errors.New("no such item")
	ErrMemoryAway  = errors.New("long-term memory does not answer")
	ErrMemoryFull  = errors.New("the long-term memory of the tenant is full")
)

// Statuses of failures, as in HTTP.
const (
	statusNotFound       = 404
	statusConflict       = 409
	statusNotImplemented = 501
	statusUnavailable    = 503
	statusTimeout        = 504
)

func notFound(err error, text string) Failure {
	return Failure{Err: err, Status: statusNotFound, Code: messages.CodeNotFound, Text: text}
}

func conflict(err error, text string) Failure {
	return Failure{Err: err, Status: statusConflict, Code: messages.CodeConflict, Text: text}
}

// failures are those of an operation.
func failures(f ...Failure) []Failure { return f }

// Failures of more than one operation.

func noRun() Failure {
	return notFound(ErrNotFound, "There is no such run, or it was removed after its retention.")
}

func noFile() Failure {
	return notFound(nil, "There is no such run, or it has no such file or list of files.")
}

func noBatch() Failure {
	return notFound(ErrNoBatch, "There is no such batch.")
}

func noSession() Failure {
	return notFound(ErrNoSession, "The session never had a run, or was deleted.")
}

func noWorkspaceFile() Failure {
	return notFound(nil, "The workspace has no files, or no such file, or other files by now than those of the list.")
}

func noWorkspace() Failure {
	return notFound(ErrNoWorkspace, "No run has left files in the workspace, or it was deleted.")
}

func checkLong() Failure {
	return Failure{Err: ErrCheckLong, Status: statusTimeout, Code: messages.CodeDeadline, Text: "The log is too long to be checked in the time of a request; `longshore replay ID --check` has no limit."}
}

func checkBusy() Failure {
	return Failure{Err: ErrCheckBusy, Status: statusTooMany, Code: messages.CodeRateLimited, Text: "The dispatcher is checking as many other runs as it does at once. The request may be made again."}
}

func noCheck() Failure {
	return Failure{Status: statusNotImplemented, Code: messages.CodeInternal, Text: "This dispatcher has no planners, or its version cannot read the log."}
}

func noAgent() Failure {
	return Failure{Err: messages.ErrUnknownAgent, Status: statusNotFound, Code: messages.CodeUnknownAgent, Text: "There is no such agent, or no such revision of it."}
}

func noPrompt() Failure {
	return notFound(messages.ErrUnknownPrompt, "There is no such prompt, or no such version of it.")
}

func noPlan() Failure {
	return notFound(ErrNoSchedule, "There is no such schedule.")
}

func noLetter() Failure {
	return notFound(ErrNoLetter, "There is no such dead letter, or it is another tenant's.")
}

func moved() Failure {
	return conflict(messages.ErrRevision, "It was changed since the revision that the change is for.")
}

func decided() Failure {
	return conflict(ErrDecided, "The run does not wait for this: another decision came first, the time for it is over, or the arguments of the call differ.")
}

func idTaken() Failure {
	return conflict(ErrConflict, "The id is that of another task.")
}

func uploadsFull() Failure {
	return Failure{Err: ErrUploadsFull, Status: statusTooMany, Code: messages.CodeRateLimited, Text: "The tenant has as much uploaded as it may without a run that refers to it."}
}

func noIndex() Failure {
	return Failure{Err: ErrNoIndex, Status: statusNotImplemented, Code: messages.CodeInternal, Text: "This dispatcher has no index of runs, or cannot ask it now."}
}

func noMemory() Failure {
	return Failure{Err: ErrNoMemory, Status: statusNotImplemented, Code: messages.CodeInternal, Text: "This dispatcher has no long-term memory."}
}

func memoryAway() Failure {
	return Failure{Err: ErrMemoryAway, Status: statusUnavailable, Code: messages.CodeInternal, Text: "Long-term memory does not answer, or has no space left. The request may be made again."}
}

func memoryFull() Failure {
	return Failure{Err: ErrMemoryFull, Status: statusTooMany, Code: messages.CodeRateLimited, Text: "The tenant would have more in long-term memory than it may."}
}

func noItem() Failure {
	return notFound(ErrNoItem, "The collection has no such item, or it has expired.")
}
