package index

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
)

// placed is an event at its place in the stream, with what several rows read of it.
type placed struct {
	messages.Event

	position uint64
	step     string              // the id of the step that it is about; empty: of none
	about    *messages.Step      // its data if a step starts or ends; nil: it is none, or cannot be read
	said     *reply              // likewise, of a reply
	called   *call               // likewise, of a call that has ended
	broken   *messages.ErrorData // likewise, of an error
}

// Places of events in several streams: the microseconds since 2020 at which the stream stored it, the number of the stream, and the end of its
// sequence. So they are in the order of time, no two are the same, and they are the same again when the index is made again.
const (
	placeStreamBits = 6 // bus.MaxPartitions are 64
	placeSeqBits    = 6

	placeEpoch = 1_577_836_800_000_000 // 2020-01-01; what is left of 64 bits lasts until 2091
)

// placeOf is the place of an event in lists: its sequence in a single stream.
func (x *Index) placeOf(f *events.Fed) uint64 {
	if x.from.Streams() == 1 {
		return f.Seq
	}
	return uint64(max(f.Time.UnixMicro()-placeEpoch, 0))<<(placeStreamBits+placeSeqBits) | uint64(f.Stream)<<placeSeqBits | f.Seq&(1<<placeSeqBits-1)
}

// firstPlace is a place such that a run whose first event is before it cannot be made again from the events. In several streams isStored says
// more.
func (x *Index) firstPlace(s *events.State) uint64 {
	if len(s.First) > 1 {
		return 1
	}
	return max(s.First[0], 1)
}

// isStored reports whether the first event of a run, which has a place, is stored still in its stream, of several.
func isStored(run messages.Ref, first int64, s *events.State) bool {
	i := bus.PartitionOf(run, len(s.First))
	if s.First[i] > s.Last[i] {
		return false
	}
	at, oldest := first>>(placeStreamBits+placeSeqBits), s.Oldest[i].UnixMicro()-placeEpoch
	if at != oldest {
		return at > oldest
	}
	const seqs = 1 << placeSeqBits // a stream stores fewer in a microsecond
	return (uint64(first)-s.First[i])%seqs < seqs/2
}

func newPlaced(e messages.Event, position uint64) placed {
	p := placed{Event: e, position: position}
	switch e.Name() {
	case messages.EventMessageEnd:
		if p.said = readReply(e.Data); p.said != nil {
			p.step = clean(p.said.StepID, maxName)
		}
	case messages.EventToolExecutionEnd:
		if p.called = readCall(e.Data); p.called != nil {
			p.step = clean(p.called.StepID, maxName)
		}
	case messages.EventStepStart, messages.EventStepEnd:
		if p.about = readStep(e.Data); p.about != nil {
			p.step = clean(p.about.StepID, maxName)
		}
	case messages.EventError:
		if p.broken = read[messages.ErrorData](e.Data); p.broken != nil {
			p.step = clean(p.broken.StepID, maxName)
		}
	}
	return p
}
