package record

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages"
)

// usual is the size that most entries and events have room in, in bytes.
const usual = 1 << 10

// AppendEvent appends an event as JSON: what encoding/json writes, which would look through the data once more.
func AppendEvent(b []byte, e *messages.Event) []byte {
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

func appendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendString appends a JSON string. Those of an envelope are nearly always plain.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '&' || c == '<' || c == '>' {
			q, _ := json.Marshal(s) // a string always encodes
			return append(b, q...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendJSON appends what encoding/json writes. Its Marshal would make a copy of its own first.
func appendJSON(b []byte, v any) ([]byte, error) {
	out := sink(b)
	if err := json.NewEncoder(&out).Encode(v); err != nil {
		return b, err
	}
	return out[:len(out)-1], nil // less its line break
}

// sink is a buffer that grows by what is written to it.
type sink []byte

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	*s = append(*s, p...)
	return len(p), nil
}

// appendData appends the data of an event.
func appendData(b []byte, data any) []byte {
	b, err := appendJSON(b, data)
	if err != nil { // our own data types always encode
		return append(b, "{}"...)
	}
	return b
}

// appendRecords appends what EncodeRecords writes.
func appendRecords(b []byte, records []Record) ([]byte, error) {
	b = append(b, '[')
	for i, r := range records {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"kind":`...), string(r.Kind()))
		var err error
		if b, err = appendJSON(append(b, `,"data":`...), r); err != nil {
			return nil, err
		}
		b = append(b, '}')
	}
	return append(b, ']'), nil
}
