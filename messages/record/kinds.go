package record

import (
	"sync"

	"github.com/longshore-run/longshore/messages"
)

// kindOf is what is to be known of a kind of record besides what it means to a run, which State.Apply of the worker says.
type kindOf struct {
	fresh  func() Record // an empty one
	events []eventOf     // that the world sees of it, in order
	// decides: it says what a person has decided. Dispatchers alone write it, and sign it.
	decides bool
	fork    inFork
}

// inFork is what becomes of a record in a fork of its run.
type inFork bool

const (
	keeps  inFork = true
	leaves inFork = false
)

// eventOf is an event that a record has.
type eventOf struct {
	name string
	when func(Record) bool // nil: always
	data func(Record) any
}

// kinds is the one table of records: how they are read, and which events they have, which is also how many. A new kind is a
// type, a row here and a case in State.Apply; one that changes the head of entries has a case in Head.follow too, and one with a text of
// others a case in Shown.
//
//nolint:gochecknoglobals // a constant
var kinds = sync.OnceValue(func() map[Kind]kindOf {
	return map[Kind]kindOf{
		KindStarted: kind[Started](
			leaves,
			shows(messages.EventRunQueued, (*Started).queued),
			shows(messages.EventRunStarted, (*Started).begun),
		),
		KindClaimed:      kind[Claimed](leaves, shows(messages.EventRunResumed, (*Claimed).resumed).when(func(r *Claimed) bool { return r.Resumes != "" })),
		KindStepStarted:  kind[StepStarted](keeps, shows(messages.EventStepStart, (*StepStarted).data)),
		KindModelReplied: kind[ModelReplied](keeps, shows(messages.EventMessageEnd, (*ModelReplied).data)),
		KindModelFailed:  kind[ModelFailed](keeps, shows(messages.EventError, (*ModelFailed).data)),
		KindToolStarted:  kind[ToolStarted](keeps, shows(messages.EventToolExecutionStart, (*ToolStarted).data)),
		KindToolReturned: kind[ToolReturned](keeps, shows(messages.EventToolExecutionEnd, (*ToolReturned).data)),
		KindStepEnded:    kind[StepEnded](keeps, shows(messages.EventStepEnd, (*StepEnded).data)),
		KindPlanned:      kind[Planned](keeps, shows(messages.EventPlan, (*Planned).data)),
		KindParked: kind[Parked](
			leaves,
			shows(messages.EventApprovalRequested, (*Parked).asks).when(func(r *Parked) bool { return r.Approval != nil }),
			shows(messages.EventRunWaiting, (*Parked).waits),
		),
		KindReleased: kind[Released](leaves),
		KindLost:     kind[Lost](leaves),
		KindExpired:  kind[Expired](leaves, shows(messages.EventApprovalDecided, (*Expired).data).when(func(r *Expired) bool { return r.Call != "" })),
		KindFinished: kind[Finished](
			leaves,
			shows(messages.EventTurnEnd, (*Finished).turn),
			shows(messages.EventRunFinished, func(r *Finished) any { return r }), // emit makes a RunFinished of it
		),
		KindBudgetWarned:   kind[BudgetWarned](leaves, shows(messages.EventBudgetWarning, (*BudgetWarned).data)),
		KindHookFailed:     kind[HookFailed](leaves, shows(messages.EventHookFailed, (*HookFailed).data)),
		KindPolicyApplied:  kind[PolicyApplied](leaves, shows(messages.EventPolicyViolation, (*PolicyApplied).data)),
		KindSessionGranted: kind[SessionGranted](leaves),
		KindRecalled:       kind[Recalled](keeps),
		KindSummarised:     kind[Summarised](keeps),
		KindLined:          kind[Lined](leaves),
		KindDelegated:      kind[Delegated](leaves, shows(messages.EventDelegated, (*Delegated).data)),
		KindChildEnded:     kind[ChildEnded](leaves, shows(messages.EventChildEnded, (*ChildEnded).data)),
		KindFilesSaved:     kind[FilesSaved](keeps),
		KindWithdrawn:      kind[Withdrawn](leaves, shows(messages.EventCancelRequested, (*Withdrawn).data)),

		KindCancelRequested: decision(kind[CancelRequested](leaves, shows(messages.EventCancelRequested, (*CancelRequested).data))),
		KindAnswered:        decision(kind[Answered](leaves)),
		KindDecided:         decision(kind[Decided](leaves, shows(messages.EventApprovalDecided, (*Decided).data))),
		KindSteered:         decision(kind[Steered](keeps, shows(messages.EventSteered, (*Steered).data))),

		KindUnverified: kind[Unverified](leaves, shows(messages.EventDecisionIgnored, (*Unverified).data).when(func(r *Unverified) bool { return r.Told })),
	}
})

func kind[T any, R interface {
	*T
	Record
}](fork inFork, events ...interface{ row() eventOf }) kindOf {
	k := kindOf{fresh: func() Record { return R(new(T)) }, fork: fork}
	for _, e := range events {
		k.events = append(k.events, e.row())
	}
	return k
}

func decision(k kindOf) kindOf {
	k.decides = true
	return k
}

// showing is an event of records of one type.
type showing[R Record] struct {
	name  string
	data  func(R) any
	given func(R) bool
}

func shows[R Record](name string, data func(R) any) showing[R] {
	return showing[R]{name: name, data: data}
}

func (s showing[R]) when(given func(R) bool) showing[R] {
	s.given = given
	return s
}

// row is the event for a record of any type: those of its kind have its type.
func (s showing[R]) row() eventOf {
	e := eventOf{name: s.name, data: func(r Record) any { return s.data(r.(R)) }} //nolint:forcetypeassert // see above
	if s.given != nil {
		e.when = func(r Record) bool { return s.given(r.(R)) } //nolint:forcetypeassert // see above
	}
	return e
}

// newRecord is an empty record of a kind, nil for an unknown one.
func newRecord(k Kind) Record {
	if of, ok := kinds()[k]; ok {
		return of.fresh()
	}
	return nil
}

// eventsOf yields the events of a record. Counting them and making them is the same walk.
func eventsOf(r Record, yield func(*eventOf)) {
	of := kinds()[r.Kind()]
	for i := range of.events {
		if e := &of.events[i]; e.when == nil || e.when(r) {
			yield(e)
		}
	}
}

// countEvents is how many events a record has, without making them.
func countEvents(r Record) (n int) {
	eventsOf(r, func(*eventOf) { n++ })
	return n
}

// Decides reports whether a record says what a person has decided. Dispatchers alone write such records, each in an entry
// without others, but for a run that ends before it begins; they sign the entry, and a reader with their keys takes no other.
func (k Kind) Decides() bool { return kinds()[k].decides }
