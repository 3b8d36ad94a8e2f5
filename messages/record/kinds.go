package record

import (
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// kindOf is all that is to be known of a kind of record except what it means to a run, which State.Apply of the worker says.
type kindOf struct {
	fresh  func() Record // an empty one
	events []eventOf     // that the world sees of it, in order
	// decides: it says what a person has decided. Dispatchers alone write it, and sign it.
	decides bool
	// resent: its writer holds a ticket until the wake-up is sent, or is a step of one who does. It needs no net.
	resent bool

	head   func(Record, *Head)                     // what it changes in the head of its entry; nil: nothing
	place  func(*Head, uint64)                     // what the sequence of its entry changes there; nil: nothing
	shown  func(Record, *Shown) Record             // the record as events may show it; nil: it has no text of others
	forked func(Record) (Record, bool)             // the record as a fork of its run keeps it; nil: it stays behind
	stands func(Record, *Head, time.Time) Standing // of one that any process may append; nil: it always counts
	ends   func(r Record, park uint64) bool        // whether it is what a park waited for; nil: it is not
}

// table is what is to be known of records, by kind.
type table map[Kind]kindOf

// Standing is what a record would be that a process appends to a run it does not own.
type Standing int

// Standings of such a record.
const (
	Counts     Standing = iota // it changes the run
	Settled                    // it changes nothing: the run has it, or is beyond it
	NotWaiting                 // it is an answer, and the run does not wait for it
	Late                       // so it is, and its time is over
)

// eventOf is an event that a record has.
type eventOf struct {
	name string
	when func(Record) bool // nil: always
	data func(Record) any
}

// kinds is the one table of records: how they are read, which events they have, which is also how many, and what they change in heads,
// in events and in forks. A new kind is a type, a row here and a case in State.Apply.
//
//nolint:gochecknoglobals // a constant
var kinds = sync.OnceValue(func() table {
	return table{
		KindStarted: kind[Started](
			heads((*Started).head), hides((*Started).shownBy),
			shows(messages.EventRunQueued, (*Started).queued),
			shows(messages.EventRunStarted, (*Started).begun),
		),
		KindClaimed: kind[Claimed](
			heads((*Claimed).head), placed(func(h *Head, seq uint64) { h.ClaimSeq = seq }),
			shows(messages.EventRunResumed, (*Claimed).resumed).when(func(r *Claimed) bool { return r.Resumes != "" }),
		),
		KindStepStarted: kind[StepStarted](kept(), shows(messages.EventStepStart, (*StepStarted).data)),
		KindModelReplied: kind[ModelReplied](
			heads(progress[*ModelReplied]), hides((*ModelReplied).shownBy), keptAs((*ModelReplied).forked),
			shows(messages.EventMessageEnd, (*ModelReplied).data),
		),
		KindModelFailed: kind[ModelFailed](
			heads(progress[*ModelFailed]), hidesText(func(r *ModelFailed) *string { return &r.Error.Message }),
			keptAs(func(r *ModelFailed) (*ModelFailed, bool) { // the wait before the next call stays behind
				return r, r.Fallback != FallbackPark && r.Fallback != FallbackRetry
			}),
			shows(messages.EventError, (*ModelFailed).data),
		),
		KindToolStarted: kind[ToolStarted](kept(), hides((*ToolStarted).shownBy), shows(messages.EventToolExecutionStart, (*ToolStarted).data)),
		KindToolReturned: kind[ToolReturned](
			keptAs((*ToolReturned).forked), heads(progress[*ToolReturned]), hides(func(r *ToolReturned, w *Shown) Record { return w.ofResult(r) }),
			shows(messages.EventToolExecutionEnd, (*ToolReturned).data),
		),
		KindStepEnded: kind[StepEnded](kept(), hidesText(func(r *StepEnded) *string { return &r.Reason }), shows(messages.EventStepEnd, (*StepEnded).data)),
		KindPlanned:   kind[Planned](kept(), hides(func(r *Planned, w *Shown) Record { return w.ofPlan(r) }), shows(messages.EventPlan, (*Planned).data)),
		KindParked: kind[Parked](
			heads((*Parked).head), placed(func(h *Head, seq uint64) { h.ParkSeq = seq }), hides(func(r *Parked, w *Shown) Record { return w.ofPark(r) }),
			shows(messages.EventApprovalRequested, (*Parked).asks).when(func(r *Parked) bool { return r.Approval != nil }),
			shows(messages.EventRunWaiting, (*Parked).waits),
		),
		KindReleased: kind[Released](heads((*Released).head)),
		KindLost:     kind[Lost](heads((*Lost).head)),
		KindExpired: kind[Expired](
			heads(func(r *Expired, h *Head) { h.satisfy(r.Park) }), endsParks(func(r *Expired, park uint64) bool { return r.Park == park }),
			shows(messages.EventApprovalDecided, (*Expired).data).when(func(r *Expired) bool { return r.Call != "" }),
		),
		KindFinished: kind[Finished](
			heads((*Finished).head),
			shows(messages.EventTurnEnd, (*Finished).turn),
			shows(messages.EventRunFinished, func(r *Finished) any { return r }), // emit makes a RunFinished of it, and hides what is to be hidden
		),
		KindBudgetWarned:   kind[BudgetWarned](shows(messages.EventBudgetWarning, (*BudgetWarned).data)),
		KindHookFailed:     kind[HookFailed](hidesText(func(r *HookFailed) *string { return &r.Reason }), shows(messages.EventHookFailed, (*HookFailed).data)),
		KindPolicyApplied:  kind[PolicyApplied](hidesText(func(r *PolicyApplied) *string { return &r.Reason }), shows(messages.EventPolicyViolation, (*PolicyApplied).data)),
		KindSessionGranted: kind[SessionGranted](heads(func(r *SessionGranted, h *Head) { h.satisfy(r.Park) })),
		KindRecalled:       kind[Recalled](kept(), heads(func(_ *Recalled, h *Head) { h.Turn = true })),
		KindSummarised:     kind[Summarised](heads(progress[*Summarised]), keptAs((*Summarised).forked)),
		KindLined:          kind[Lined](heads((*Lined).head)),
		KindDelegated: kind[Delegated](
			heads((*Delegated).head), placed((*Head).placeChildren),
			shows(messages.EventDelegated, (*Delegated).data),
		),
		KindChildEnded: kind[ChildEnded](
			heads((*ChildEnded).head), stands((*ChildEnded).stands), resent(), hides(func(r *ChildEnded, w *Shown) Record { return w.ofChild(r) }),
			shows(messages.EventChildEnded, (*ChildEnded).data),
		),
		KindFilesSaved: kind[FilesSaved](heads((*FilesSaved).head), placed((*Head).placeWorkspace), keptAs((*FilesSaved).forked)),
		KindMemoryWritten: kind[MemoryWritten](
			keptAs(func(r *MemoryWritten) (*MemoryWritten, bool) { return r, !r.Learned }), hides(func(r *MemoryWritten, w *Shown) Record { return r.shownBy(w) }),
			shows(messages.EventMemoryWrite, (*MemoryWritten).data).when(func(r *MemoryWritten) bool { return len(r.Changes) > 0 }),
		),
		KindMemoryRecalled: kind[MemoryRecalled](
			keptAs((*MemoryRecalled).forked), hides(func(r *MemoryRecalled, w *Shown) Record { return r.shownBy(w) }),
			shows(messages.EventMemoryRecalled, (*MemoryRecalled).data),
		),
		KindWithdrawn: kind[Withdrawn](
			heads((*Withdrawn).head), stands((*Withdrawn).stands), resent(), hidesText(func(r *Withdrawn) *string { return &r.Reason }),
			shows(messages.EventCancelRequested, (*Withdrawn).data),
		),

		KindCancelRequested: kind[CancelRequested](
			decides(), heads(func(_ *CancelRequested, h *Head) { h.cancel() }), stands((*CancelRequested).stands),
			endsParks(func(*CancelRequested, uint64) bool { return true }), hidesText(func(r *CancelRequested) *string { return &r.Reason }),
			shows(messages.EventCancelRequested, (*CancelRequested).data),
		),
		KindAnswered: kind[Answered](
			decides(), heads((*Answered).head), stands((*Answered).stands), endsParks(func(r *Answered, park uint64) bool { return r.Park == park }),
		),
		KindDecided: kind[Decided](
			decides(), heads(func(r *Decided, h *Head) { h.satisfy(r.Park) }), stands((*Decided).stands),
			endsParks(func(r *Decided, park uint64) bool { return r.Park == park }), hides((*Decided).shownBy),
			shows(messages.EventApprovalDecided, (*Decided).data),
		),
		KindSteered: kind[Steered](
			decides(), kept(), hidesText(func(r *Steered) *string { return &r.Message }),
			shows(messages.EventSteered, (*Steered).data),
		),

		KindUnverified: kind[Unverified](shows(messages.EventDecisionIgnored, (*Unverified).data).when(func(r *Unverified) bool { return r.Told })),
	}
})

// part is a part of a row.
type part interface{ add(k *kindOf) }

type partOf func(k *kindOf)

func (p partOf) add(k *kindOf) { p(k) }

func kind[T any, R interface {
	*T
	Record
}](parts ...part) kindOf {
	k := kindOf{fresh: func() Record { return R(new(T)) }}
	for _, p := range parts {
		p.add(&k)
	}
	return k
}

// Parts of rows that need no more words.

func decides() partOf { return func(k *kindOf) { k.decides = true } }

func resent() partOf { return func(k *kindOf) { k.resent = true } }

func kept() partOf {
	return func(k *kindOf) { k.forked = func(r Record) (Record, bool) { return r, true } }
}

// of is a record of a row, which has its type.
func of[R Record](r Record) R { return r.(R) } //nolint:forcetypeassert // see above

func keptAs[R Record](as func(R) (R, bool)) partOf {
	return func(k *kindOf) { k.forked = func(r Record) (Record, bool) { return as(of[R](r)) } }
}

func heads[R Record](change func(R, *Head)) partOf {
	return func(k *kindOf) { k.head = func(r Record, h *Head) { change(of[R](r), h) } }
}

func placed(change func(*Head, uint64)) partOf {
	return func(k *kindOf) { k.place = change }
}

func stands[R Record](is func(R, *Head, time.Time) Standing) partOf {
	return func(k *kindOf) {
		k.stands = func(r Record, h *Head, now time.Time) Standing { return is(of[R](r), h, now) }
	}
}

func endsParks[R Record](ends func(r R, park uint64) bool) partOf {
	return func(k *kindOf) { k.ends = func(r Record, park uint64) bool { return ends(of[R](r), park) } }
}

func hides[R Record](shown func(R, *Shown) Record) partOf {
	return func(k *kindOf) { k.shown = func(r Record, w *Shown) Record { return shown(of[R](r), w) } }
}

// hidesText is for records with one text of others.
func hidesText[T any, R interface {
	*T
	Record
}](text func(R) *string) partOf {
	return hides(func(r R, w *Shown) Record {
		now := w.text(*text(r))
		if now == *text(r) {
			return r
		}
		c := *r
		*text(R(&c)) = now
		return R(&c)
	})
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

func (s showing[R]) add(k *kindOf) {
	e := eventOf{name: s.name, data: func(r Record) any { return s.data(of[R](r)) }}
	if s.given != nil {
		e.when = func(r Record) bool { return s.given(of[R](r)) }
	}
	k.events = append(k.events, e)
}

// fresh is an empty record of a kind, nil for an unknown one.
func (t table) fresh(k Kind) Record {
	if of, ok := t[k]; ok {
		return of.fresh()
	}
	return nil
}

// events yields the events of a record. Counting them and making them is the same walk.
func (t table) events(r Record, yield func(*eventOf)) {
	of := t[r.Kind()]
	for i := range of.events {
		if e := &of.events[i]; e.when == nil || e.when(r) {
			yield(e)
		}
	}
}

// count is how many events a record has, without making them.
func (t table) count(r Record) (n int) {
	t.events(r, func(*eventOf) { n++ })
	return n
}

// shown is a record as its events may show it: itself, or a copy in which what must not be shown is missing. It is called before
// texts are shortened, for half a number would not be found.
func (t table) shown(r Record, w *Shown) Record {
	of := t[r.Kind()]
	if w == nil || *w == (Shown{}) || of.shown == nil {
		return r
	}
	return of.shown(r, w)
}

// Decides reports whether a record says what a person has decided. Dispatchers alone write such records, each in an entry
// without others, but for a run that ends before it begins; they sign the entry, and a reader with their keys takes no other.
func (k Kind) Decides() bool { return kinds()[k].decides }

// Resent reports whether the writer of a record holds a ticket until its wake-up is sent, or is a step of one who does. It needs no
// net.
func (k Kind) Resent() bool { return kinds()[k].resent }

// StandingOf is what a record would be after a head, at a time. The run has not ended.
func StandingOf(r Record, h *Head, now time.Time) Standing { return kinds().standing(r, h, now) }

func (t table) standing(r Record, h *Head, now time.Time) Standing {
	if of := t[r.Kind()]; of.stands != nil {
		return of.stands(r, h, now)
	}
	return Counts
}

// Ends reports whether a record is what the park of a sequence waited for.
func Ends(r Record, park uint64) bool {
	of := kinds()[r.Kind()]
	return of.ends != nil && of.ends(r, park)
}
