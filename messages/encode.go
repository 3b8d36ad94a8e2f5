package messages

import (
	"encoding/json"
	"strconv"
	"time"
)

// Events and heads are written by hand: they are most of what a run writes. The result is that of encoding/json.

// AppendJSON appends the event as JSON.
func (e *Event) AppendJSON(b []byte) []byte {
	b = appendString(append(b, `{"specversion":`...), e.SpecVersion)
	b = appendString(append(b, `,"id":`...), e.ID)
	b = appendString(append(b, `,"source":`...), e.Source)
	b = appendString(append(b, `,"type":`...), e.Type)
	b = appendString(append(b, `,"subject":`...), e.Subject)
	b = appendTime(append(b, `,"time":`...), e.Time)
	b = appendString(append(b, `,"datacontenttype":`...), e.DataContentType)
	b = appendString(append(b, `,"sequence":`...), e.Sequence)
	if e.Traceparent != "" {
		b = appendString(append(b, `,"traceparent":`...), e.Traceparent)
	}
	b = append(b, `,"data":`...)
	if len(e.Data) == 0 {
		b = append(b, "null"...)
	}
	return append(append(b, e.Data...), '}')
}

func appendHead(b []byte, h *Head) []byte {
	b = appendString(append(b, `{"id":`...), h.ID)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(h.Version), 10)
	b = appendTime(append(b, `,"time":`...), h.Time)
	b = append(b, `,"kinds":[`...)
	for i, k := range h.Kinds {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, string(k))
	}
	b = appendString(append(b, `],"phase":`...), string(h.Phase))
	if h.Claim != "" {
		b = appendString(append(b, `,"claim":`...), h.Claim)
	}
	b = appendCount(b, `,"ticket":`, h.Ticket)
	b = appendCount(b, `,"claimSeq":`, h.ClaimSeq)
	b = appendCount(b, `,"parkSeq":`, h.ParkSeq)
	b = appendCount(b, `,"attempt":`, uint64(max(h.Attempt, 0))) //nolint:gosec // a count
	if h.Cancel {
		b = append(b, `,"cancel":true`...)
	}
	if h.Waits != "" {
		b = appendString(append(b, `,"waits":`...), h.Waits)
	}
	b = strconv.AppendUint(append(b, `,"firstEvent":`...), h.FirstEvent, 10)
	b = appendCount(b, `,"events":`, uint64(max(h.Events, 0))) //nolint:gosec // a count
	b = appendCount(b, `,"eventsThrough":`, h.EventsThrough)
	b = appendCount(b, `,"snapshot":`, h.Snapshot)
	return append(b, '}')
}

// appendCount appends a field unless it is 0.
func appendCount(b []byte, name string, n uint64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendUint(append(b, name...), n, 10)
}

func appendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendString appends a JSON string. Tokens, ids and the like need no escapes; the rest takes the long way.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			q, _ := json.Marshal(s) // a string always encodes
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
