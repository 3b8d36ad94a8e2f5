package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// HeaderTraceparent is the header of messages that carries a trace context. NATS compares names of headers as they
// are, so it is in lower case, as the W3C writes it.
const HeaderTraceparent = "traceparent"

// Traceparent is a place in a trace: a span, as the W3C Trace Context specification writes it.
type Traceparent struct {
	Trace [16]byte
	Span  [8]byte
	Flags byte
}

const (
	traceparentSize = 55 // of version 00; others may have more behind it
	maxTraceparent  = 128
	flagSampled     = 1
)

var errTraceparent = errors.New("is not a traceparent of the W3C, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")

// ParseTraceparent reads a traceparent strictly. One of a version to come is read as far as this version goes.
func ParseTraceparent(s string) (Traceparent, error) {
	var t Traceparent
	version, rest, ok := strings.Cut(s, "-")
	switch {
	case !ok || len(s) < traceparentSize || len(version) != 2 || !isLowerHex(version) || version == "ff":
		return Traceparent{}, errTraceparent
	case len(s) > traceparentSize && (version == "00" || s[traceparentSize] != '-'):
		return Traceparent{}, errTraceparent
	}
	trace, span, flags := rest[:32], rest[33:49], rest[50:52]
	if rest[32] != '-' || rest[49] != '-' || !isLowerHex(trace) || !isLowerHex(span) || !isLowerHex(flags) {
		return Traceparent{}, errTraceparent
	}
	var last [1]byte
	_, _ = hex.Decode(t.Trace[:], []byte(trace)) // digits all
	_, _ = hex.Decode(t.Span[:], []byte(span))
	_, _ = hex.Decode(last[:], []byte(flags))
	if t.Trace == [16]byte{} || t.Span == [8]byte{} {
		return Traceparent{}, errTraceparent
	}
	t.Flags = last[0]
	return t, nil
}

// Sampled reports whether the sampled flag is set.
func (t Traceparent) Sampled() bool { return t.Flags&flagSampled != 0 }

func (t Traceparent) String() string {
	return "00-" + hex.EncodeToString(t.Trace[:]) + "-" + hex.EncodeToString(t.Span[:]) + "-" + hex.EncodeToString([]byte{t.Flags})
}

// RunTrace is the span of a run: in the trace of the traceparent that its task came with, or else in one of its own.
// Trace and span follow from that and from the run's name alone, so all who work on a run agree about them.
func RunTrace(run Ref, traceparent string) Traceparent {
	t, err := ParseTraceparent(traceparent)
	if err != nil {
		sum := traceHash(run, "trace")
		copy(t.Trace[:], sum[:])
		t.Flags = flagSampled
	}
	t.Span = SpanOf(run, "run")
	return t
}

// DelegationTrace is the span of the tool call with which a run delegates, below which its children are. It is known before the call has
// returned, for its id follows from the number of the delegation.
func DelegationTrace(run Ref, traceparent string, number int) Traceparent {
	t := RunTrace(run, traceparent)
	t.Span = SpanOf(run, DelegationPart(number))
	return t
}

// DelegationPart is what that span is called among those of its run.
func DelegationPart(number int) string { return "delegation." + strconv.Itoa(number) }

// SpanOf returns the id of one of a run's spans. It is deterministic.
func SpanOf(run Ref, part string) (id [8]byte) {
	sum := traceHash(run, "span."+part)
	copy(id[:], sum[:])
	return id
}

// traceHash is zero in its first bytes only with negligible probability.
func traceHash(run Ref, part string) [sha256.Size]byte {
	return sha256.Sum256([]byte(run.Tenant + "." + run.Run + "." + part))
}

// Join puts the task into the trace of a header, unless the task names one itself. An invalid header is ignored, as the W3C
// specification requires: an intermediary may have set it.
func (t *Task) Join(header string) {
	if _, err := ParseTraceparent(header); err == nil && t.Traceparent == "" && len(header) <= maxTraceparent {
		t.Traceparent = header
	}
}

func isLowerHex(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == ""
}

func checkTraceparent(s string) error {
	if s == "" {
		return nil
	}
	if err := strict.CheckText("traceparent", s, maxTraceparent); err != nil {
		return err
	}
	if _, err := ParseTraceparent(s); err != nil {
		return &FieldError{Field: "traceparent", Reason: err.Error()}
	}
	return nil
}
