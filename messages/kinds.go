package messages

import "sync"

// kindOf is what is to be known of a kind of record beside what it means to a run, which State.Apply of the worker says.
type kindOf struct {
	fresh  func() Record // an empty one
	events []eventOf     // that the world sees of it, in order
	// decides: it says what a person has decided. Dispatchers alone write it, and sign it.
	decides bool
}

// eventOf is an event that a record has.
type eventOf struct {
	name string
	when func(Record) bool // nil: always
	data func(Record) any
	room func(Record) int // about how long the data is as JSON; nil: some
}

// kinds is the one table of records: how they are read, and which events they have, which is also how many. A new kind is a
// type, a row here and a case in State.Apply; one that changes the head of entries has a case in Head.follow too.
//
//nolint:gochecknoglobals // a constant
var kinds = sync.OnceValue(func() map[Kind]kindOf {
	return map[Kind]kindOf{
		KindStarted: kind[Started](
			shows(EventRunQueued, (*Started).queued).sized(func(r *Started) int { return some + min(len(r.Task.Input.Text()), maxEventArgs) }),
			shows(EventRunStarted, (*Started).begun),
		),
		KindClaimed:     kind[Claimed](shows(EventRunResumed, (*Claimed).resumed).when(func(r *Claimed) bool { return r.Resumes != "" })),
		KindStepStarted: kind[StepStarted](shows(EventStepStart, (*StepStarted).data).sized(func(*StepStarted) int { return few })),
		KindModelReplied: kind[ModelReplied](
			shows(EventMessageEnd, (*ModelReplied).data).sized(func(r *ModelReplied) int { return some + few + textRoom(r.Message.Content) }),
		),
		KindModelFailed: kind[ModelFailed](shows(EventError, (*ModelFailed).data)),
		KindToolStarted: kind[ToolStarted](
			shows(EventToolExecutionStart, (*ToolStarted).data).sized(func(r *ToolStarted) int { return 2*few + min(len(r.Call.Arguments), maxEventText) }),
		),
		KindToolReturned: kind[ToolReturned](
			shows(EventToolExecutionEnd, (*ToolReturned).data).sized(func(r *ToolReturned) int { return 2*few + textRoom(r.Result.Content) }),
		),
		KindStepEnded: kind[StepEnded](shows(EventStepEnd, (*StepEnded).data).sized(func(*StepEnded) int { return few })),
		KindPlanned:   kind[Planned](shows(EventPlan, (*Planned).data)),
		KindParked: kind[Parked](
			shows(EventApprovalRequested, (*Parked).asks).when(func(r *Parked) bool { return r.Approval != nil }),
			shows(EventRunWaiting, (*Parked).waits),
		),
		KindReleased: kind[Released](),
		KindLost:     kind[Lost](),
		KindExpired:  kind[Expired](shows(EventApprovalDecided, (*Expired).data).when(func(r *Expired) bool { return r.Call != "" })),
		KindFinished: kind[Finished](
			shows(EventTurnEnd, (*Finished).turn).sized(func(*Finished) int { return 2 * few }),
			shows(EventRunFinished, func(r *Finished) any { return r }).sized((*Finished).room), // emit makes a RunFinished of it
		),
		KindBudgetWarned:   kind[BudgetWarned](shows(EventBudgetWarning, (*BudgetWarned).data)),
		KindHookFailed:     kind[HookFailed](shows(EventHookFailed, (*HookFailed).data)),
		KindSessionGranted: kind[SessionGranted](),
		KindRecalled:       kind[Recalled](),
		KindSummarised:     kind[Summarised](),
		KindLined:          kind[Lined](),

		KindCancelRequested: decision(kind[CancelRequested](shows(EventCancelRequested, (*CancelRequested).data))),
		KindAnswered:        decision(kind[Answered]()),
		KindDecided:         decision(kind[Decided](shows(EventApprovalDecided, (*Decided).data))),
		KindSteered:         decision(kind[Steered](shows(EventSteered, (*Steered).data))),

		KindUnverified: kind[Unverified](shows(EventDecisionIgnored, (*Unverified).data).when(func(r *Unverified) bool { return r.Told })),
	}
})

// Sizes of the data of events, in bytes.
const few, some = 64, 192

func kind[T any, R interface {
	*T
	Record
}](events ...interface{ row() eventOf }) kindOf {
	k := kindOf{fresh: func() Record { return R(new(T)) }}
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
	size  func(R) int
}

func shows[R Record](name string, data func(R) any) showing[R] {
	return showing[R]{name: name, data: data}
}

func (s showing[R]) when(given func(R) bool) showing[R] {
	s.given = given
	return s
}

func (s showing[R]) sized(size func(R) int) showing[R] {
	s.size = size
	return s
}

// row is the event for a record of any type: those of its kind have its type.
func (s showing[R]) row() eventOf {
	e := eventOf{name: s.name, data: func(r Record) any { return s.data(r.(R)) }} //nolint:forcetypeassert // see above
	if s.given != nil {
		e.when = func(r Record) bool { return s.given(r.(R)) } //nolint:forcetypeassert // see above
	}
	if s.size != nil {
		e.room = func(r Record) int { return s.size(r.(R)) } //nolint:forcetypeassert // see above
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

// roomFor is about how long the data of the records' events is, of those that are wanted.
func roomFor(records []Record, wanted func(name string) bool) (n int) {
	for _, r := range records {
		eventsOf(r, func(e *eventOf) {
			switch {
			case !wanted(e.name):
			case e.room == nil:
				n += some
			default:
				n += e.room(r)
			}
		})
	}
	return n
}

// Decides reports whether a record says what a person has decided. Dispatchers alone write such records, each in an entry
// without others, but for a run that ends before it begins; they sign the entry, and a reader with their keys takes no other.
func (k Kind) Decides() bool { return kinds()[k].decides }
