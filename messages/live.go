package messages

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages/strict"
)

// TypeLive is the type of a live message, in addition to those of events.
const TypeLive = "longshore.live.v1"

// LiveKind says what a live message brings.
type LiveKind string

// Kinds of live messages. A watcher ignores others: a newer worker may send them.
const (
	LiveText      LiveKind = "text"      // continues with the reply's text
	LiveReasoning LiveKind = "reasoning" // continues with its reasoning; only when the agent keeps or echoes that
	LiveRetry     LiveKind = "retry"     // the call has failed and is made again; text says why and when, for people
	LiveCall      LiveKind = "tool_call" // continues with the arguments of a tool call; the first message of a call may have none
	LiveReset     LiveKind = "reset"     // the reply begins anew: forget what was shown of it

	// LiveToolOutput is no part of a reply: it continues with what a program of the tool call CallID writes while it runs. Its messages
	// are numbered by themselves, from 1 for each call and attempt, and tool_execution_end replaces them.
	LiveToolOutput LiveKind = "tool_output"
)

// Live is a piece of a reply that is being written, on Ref.LiveSubject. It is stored nowhere and may be lost; the
// whole reply follows in message_end of the same step, which replaces all of it.
//
// Step, Attempt and Try are ordered, in this order, and only grow: a piece with lower ones is of a reply that was
// given up, and one with higher ones begins a new reply.
type Live struct {
	Type    string   `json:"type"` // TypeLive
	Run     string   `json:"run"`
	Step    int      `json:"step"`              // from 1
	Attempt int      `json:"attempt"`           // claims of the run so far: it grows when another worker continues
	Try     int      `json:"try"`               // of the call by this worker, from 1: it grows when the call is repeated
	N       int      `json:"n"`                 // of the messages of this step and attempt, from 1: what lacks was lost on the way
	Dropped int      `json:"dropped,omitempty"` // bytes that the worker left out right before this piece
	Kind    LiveKind `json:"kind"`
	Text    string   `json:"text,omitempty"`
	CallID  string   `json:"callId,omitempty"`   // of a tool_call, which message_end may have under another id, or of tool_output
	Tool    string   `json:"toolName,omitempty"` // of either
}

// maxLiveText bounds the text of one message in bytes; writers stay far below.
const maxLiveText = 1 << 20

// DecodeLive reads a live message of a run. It takes fields and kinds that it does not know. The error is a
// *FieldError.
func DecodeLive(run Ref, data []byte) (Live, error) {
	var l Live
	if err := json.Unmarshal(data, &l); err != nil {
		return Live{}, &FieldError{Field: strict.Body, Reason: "is not a live message"}
	}
	for _, number := range []struct {
		field string
		value int
	}{{"step", l.Step}, {"attempt", l.Attempt}, {"try", l.Try}, {"n", l.N}} {
		if number.value < 1 || number.value > math.MaxInt32 {
			return Live{}, &FieldError{Field: number.field, Reason: fmt.Sprintf("must be 1 to %d", math.MaxInt32)}
		}
	}
	switch {
	case l.Type != TypeLive:
		return Live{}, &FieldError{Field: "type", Reason: "must be " + TypeLive}
	case l.Run != run.Run:
		return Live{}, &FieldError{Field: "run", Reason: "differs from that of the subject"}
	case l.Dropped < 0:
		return Live{}, &FieldError{Field: "dropped", Reason: "must not be negative"}
	case !strict.ValidToken(string(l.Kind)):
		return Live{}, strict.CheckToken("kind", string(l.Kind))
	case len(l.CallID) > MaxEventName || len(l.Tool) > MaxEventName:
		return Live{}, &FieldError{Field: "callId", Reason: fmt.Sprintf("this or toolName is larger than %d bytes", MaxEventName)}
	case len(l.Text) > maxLiveText:
		return Live{}, &FieldError{Field: "text", Reason: fmt.Sprintf("larger than %d bytes", maxLiveText)}
	}
	return l, nil
}

// LiveSubject carries the run's replies while they are written. It is in no stream.
func (r Ref) LiveSubject() string { return "live." + r.Tenant + "." + r.Run }

// maxLiveReply bounds what a LiveReply keeps of text and of reasoning, and a LiveOutput, in bytes each.
const maxLiveReply = 64 << 10

// LivePlace is how far the live text of a run was read. The zero value is its beginning.
type LivePlace struct {
	Step, Attempt, Try int
	N                  int // of the newest message
}

// Follow moves the place to a message. It reports whether the message is fresh (neither of a reply that was given up nor
// seen before), whether a reply begins anew with it, and whether something right before it was lost. The output of tools is of no
// reply.
func (p *LivePlace) Follow(l *Live) (fresh, anew, gap bool) {
	if l.Kind == LiveToolOutput {
		return false, false, false
	}
	next := LivePlace{l.Step, l.Attempt, l.Try, l.N}
	order := slices.Compare([]int{l.Step, l.Attempt, l.Try}, []int{p.Step, p.Attempt, p.Try})
	if order < 0 || order == 0 && l.N <= p.N {
		return false, false, false
	}
	before := 0
	if l.Step == p.Step && l.Attempt == p.Attempt {
		before = p.N // the messages of an attempt are numbered on
	}
	*p = next
	return true, order > 0 || l.Kind == LiveReset, l.Dropped > 0 || l.N != before+1 && l.Kind != LiveReset
}

// LiveReply is a reply while it is written, put together from live messages. The zero value is ready for use.
type LiveReply struct {
	LivePlace

	Text       string // its end, if it is long
	Reasoning  string // as Text
	Incomplete bool   // something before the end of what is here was lost or cut
}

// Add takes a message into account. False: it is of a reply that was given up, or seen before, and changes nothing.
func (r *LiveReply) Add(l *Live) bool {
	fresh, anew, gap := r.Follow(l)
	if !fresh {
		return false
	}
	if anew {
		*r = LiveReply{LivePlace: r.LivePlace}
	}
	r.Incomplete = r.Incomplete || gap
	switch l.Kind {
	case LiveText:
		r.Text, r.Incomplete = longer(r.Text, l.Text, r.Incomplete)
	case LiveReasoning:
		r.Reasoning, r.Incomplete = longer(r.Reasoning, l.Text, r.Incomplete)
	case LiveCall, LiveRetry, LiveReset, LiveToolOutput: // text and reasoning are all that is kept
	}
	return true
}

// LiveOutput is what a program of a tool call writes while it runs, put together from live messages: that of the newest call that
// wrote something. The zero value is ready for use.
type LiveOutput struct {
	Step, Attempt int
	CallID        string
	N             int    // of the newest message
	Text          string // its end, if it is long
	Incomplete    bool   // something before the end of what is here was lost or cut
}

// Add takes a message into account. False: it is of something else, of an attempt that was given up, or seen before, and changes
// nothing.
func (o *LiveOutput) Add(l *Live) bool {
	if l.Kind != LiveToolOutput {
		return false
	}
	order := slices.Compare([]int{l.Step, l.Attempt}, []int{o.Step, o.Attempt})
	same := order == 0 && l.CallID == o.CallID
	if order < 0 || same && l.N <= o.N {
		return false
	}
	if !same {
		*o = LiveOutput{Step: l.Step, Attempt: l.Attempt, CallID: l.CallID}
	}
	o.Incomplete = o.Incomplete || l.Dropped > 0 || l.N != o.N+1
	o.N = l.N
	o.Text, o.Incomplete = longer(o.Text, l.Text, o.Incomplete)
	return true
}

// longer is a text with more at its end, cut at its beginning where it is too long.
func longer(text, more string, incomplete bool) (string, bool) {
	text += more
	if len(text) <= maxLiveReply {
		return text, incomplete
	}
	from := len(text) - maxLiveReply
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return strings.Clone(text[from:]), true
}
