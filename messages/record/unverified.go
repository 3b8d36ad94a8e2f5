package record

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// KindUnverified is the kind of Unverified.
const KindUnverified Kind = "unverified"

// Decides reports whether the entry has a record that says what a person has decided.
func (h *Head) Decides() bool {
	for _, k := range h.Kinds {
		if k.Decides() {
			return true
		}
	}
	return false
}

// Unverified stands for a record that does not count. No log needs to hold one: readers put it there. It changes nothing.
type Unverified struct {
	Of   Kind `json:"of"`             // what it says it is
	Told bool `json:"told,omitempty"` // it has an event. Its kind has one in any case, so the numbers of later events do not change
}

// Kind implements Record.
func (*Unverified) Kind() Kind { return KindUnverified }

// unverified is what stands for a record of a kind.
func unverified(k Kind) *Unverified {
	return &Unverified{Of: Kind(strict.Clip(string(k), strict.MaxToken)), Told: k == KindDecided || k == KindCancelRequested || k == KindSteered}
}

func (u *Unverified) data() any {
	return messages.DecisionIgnored{Kind: named(string(u.Of)), Reason: "no valid signature"}
}

// Ignored is an entry of which nothing counts: what was true before it, by the head prev, is true after it. Of e only the
// head is read, and of that only what names the entry.
func (e Entry) Ignored(prev Head) Entry {
	h := prev
	h.ID, h.Version, h.Time = e.Head.ID, e.Head.Version, e.Head.Time
	h.FirstEvent, h.Events, h.Kinds = max(prev.FirstEvent+uint64(prev.Events), 1), 0, nil
	out := Entry{Seq: e.Seq, Head: h}
	for _, k := range e.Head.Kinds {
		u := unverified(k)
		out.Records = append(out.Records, u)
		out.Head.Kinds = append(out.Head.Kinds, KindUnverified)
		out.Head.Events += kinds().count(u)
	}
	return out
}

// Undecided is the entry without what people decided: the first one of a log, of a run that ended before it began. It
// has ended all the same.
func (e Entry) Undecided() Entry {
	kinds, records := make([]Kind, len(e.Head.Kinds)), make([]Record, len(e.Records))
	for i, k := range e.Head.Kinds {
		if kinds[i] = k; k.Decides() {
			kinds[i] = KindUnverified
		}
	}
	for i, r := range e.Records {
		if records[i] = r; r.Kind().Decides() {
			records[i] = unverified(r.Kind())
		}
	}
	e.Head.Kinds = kinds
	if e.Records != nil {
		e.Records = records
	}
	return e
}
