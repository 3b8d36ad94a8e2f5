package record

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages"
)

// Heads, events and the most frequent records and data are written by hand: they are most of what a run writes, and
// encoding/json takes a seventh more of a worker's time for each run. The result is that of encoding/json.

// usual is the size that most entries and events have room in, in bytes.
const usual = 1 << 10

// AppendEvent appends an event as JSON.
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
	b = appendCount(b, `,"delivery":`, uint64(max(h.Delivery, 0)))
	b = appendCount(b, `,"claimSeq":`, h.ClaimSeq)
	b = appendCount(b, `,"parkSeq":`, h.ParkSeq)
	b = appendCount(b, `,"attempt":`, uint64(max(h.Attempt, 0)))
	b = appendTrue(b, `,"alone":`, h.Alone)
	if h.Cancel {
		b = append(b, `,"cancel":true`...)
	}
	if h.Waits != "" {
		b = appendString(append(b, `,"waits":`...), h.Waits)
	}
	if h.Needs != nil {
		b = appendRest(append(b, `,"needs":`...), h.Needs)
	}
	b = strconv.AppendUint(append(b, `,"firstEvent":`...), h.FirstEvent, 10)
	b = appendCount(b, `,"events":`, uint64(max(h.Events, 0)))
	b = appendCount(b, `,"eventsThrough":`, h.EventsThrough)
	b = appendOptional(b, `,"session":`, h.Session)
	b = appendTrue(b, `,"turn":`, h.Turn)
	b = appendTrue(b, `,"webhook":`, h.Webhook)
	b = appendOptional(b, `,"trace":`, h.Trace)
	for i, l := range h.Semaphores {
		if i == 0 {
			b = append(b, `,"lines":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendString(b, l)
		if i == len(h.Semaphores)-1 {
			b = append(b, ']')
		}
	}
	b = appendOptional(b, `,"status":`, string(h.Status))
	if h.Shown != nil {
		b = h.Shown.appendJSON(append(b, `,"shown":`...))
	}
	if h.Children != nil {
		b = appendRest(append(b, `,"children":`...), h.Children)
	}
	if len(h.Earlier) > 0 {
		b = appendRest(append(b, `,"earlier":`...), h.Earlier)
	}
	if h.Parent != nil {
		b = appendRest(append(b, `,"parent":`...), h.Parent)
	}
	if h.Workspace != nil {
		b = appendRest(append(b, `,"workspace":`...), h.Workspace)
	}
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

// plain says of each byte whether it is written as it is.
const plain = "" +
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" + // below the space
	"yynyyynyyyyyyyyyyyyyyyyyyyyynyny" + // all but " & < >
	"yyyyyyyyyyyyyyyyyyyyyyyyyyyynyyy" + // all but the backslash
	"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy" +
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" +
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" // no ASCII

// appendString appends a JSON string.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if plain[c] == 'y' {
			continue
		}
		if c >= utf8.RuneSelf { // may be invalid, or a line break to JavaScript
			q, _ := json.Marshal(s[i:]) // a string always encodes
			b = append(b, s[from:i]...)
			return append(b, q[1:]...)
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// appendData appends the data of an event.
func appendData(b []byte, data any) []byte {
	switch d := data.(type) {
	case *messages.Step:
		return appendStep(d, b)
	case *messages.ToolExecution:
		return appendToolExecution(d, b)
	case *messages.MessageEnd:
		return appendMessageEnd(d, b)
	case *messages.TurnEnd:
		return appendTurnEnd(d, b)
	case *messages.RunFinished:
		return appendRunFinished(d, b)
	default:
		raw, err := json.Marshal(data)
		if err != nil {
			raw = []byte(`{}`) // our own data types always encode
		}
		return append(b, raw...)
	}
}

func appendStep(d *messages.Step, b []byte) []byte {
	b = appendString(append(b, `{"stepId":`...), d.StepID)
	b = strconv.AppendInt(append(b, `,"step":`...), int64(d.Step), 10)
	b = appendOptional(b, `,"status":`, string(d.Status))
	b = appendOptional(b, `,"reason":`, d.Reason)
	return append(b, '}')
}

func appendToolExecution(d *messages.ToolExecution, b []byte) []byte {
	b = appendString(append(b, `{"stepId":`...), d.StepID)
	b = appendString(append(b, `,"callId":`...), d.CallID)
	b = appendString(append(b, `,"toolName":`...), d.ToolName)
	b = appendOptional(b, `,"arguments":`, d.Arguments)
	b = appendOptional(b, `,"result":`, d.Result)
	b = appendTrue(b, `,"isError":`, d.IsError)
	b = appendOptional(b, `,"code":`, string(d.Code))
	if d.Millis != 0 {
		b = strconv.AppendInt(append(b, `,"millis":`...), d.Millis, 10)
	}
	b = appendTrue(b, `,"truncated":`, d.Truncated)
	if len(d.Meta) > 0 {
		b = appendRest(append(b, `,"meta":`...), d.Meta)
	}
	return append(b, '}')
}

func appendMessageEnd(d *messages.MessageEnd, b []byte) []byte {
	b = appendString(append(b, `{"stepId":`...), d.StepID)
	b = appendString(append(b, `,"role":`...), string(d.Role))
	b = appendString(append(b, `,"text":`...), d.Text)
	b = appendOptional(b, `,"reasoning":`, d.Reasoning)
	for i := range d.ToolCalls {
		if i == 0 {
			b = append(b, `,"toolCalls":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendCall(b, &d.ToolCalls[i])
	}
	if len(d.ToolCalls) > 0 {
		b = append(b, ']')
	}
	b = appendString(append(b, `,"stop":`...), string(d.Stop))
	b = appendUsage(&d.Usage, append(b, `,"usage":`...))
	b = appendOptional(b, `,"provider":`, d.Provider)
	b = appendOptional(b, `,"model":`, d.Model)
	b = strconv.AppendInt(append(b, `,"millis":`...), d.Millis, 10)
	b = appendTrue(b, `,"truncated":`, d.Truncated)
	b = appendTrue(b, `,"cached":`, d.Cached)
	b = appendCost(b, d.Cost)
	b = appendMillis(b, `,"firstTokenMillis":`, d.FirstTokenMillis)
	return append(b, '}')
}

func appendUsage(u *messages.Usage, b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"input":`...), u.Input, 10)
	b = strconv.AppendInt(append(b, `,"output":`...), u.Output, 10)
	for _, f := range [...]struct {
		name string
		n    int64
	}{{`,"cacheRead":`, u.CacheRead}, {`,"cacheWrite":`, u.CacheWrite}, {`,"reasoning":`, u.Reasoning}} {
		if f.n != 0 {
			b = strconv.AppendInt(append(b, f.name...), f.n, 10)
		}
	}
	b = strconv.AppendInt(append(b, `,"total":`...), u.Total, 10)
	return append(b, '}')
}

// appendOptional appends a field unless it is empty.
func appendOptional(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(append(b, name...), s)
}

// appendTrue appends a field unless it is false.
func appendTrue(b []byte, name string, v bool) []byte {
	if !v {
		return b
	}
	return append(append(b, name...), "true"...)
}

// appendRecords appends what EncodeRecords writes.
func appendRecords(b []byte, records []Record) ([]byte, error) {
	b = append(b, '[')
	for i, r := range records {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"kind":`...), string(r.Kind()))
		b = append(b, `,"data":`...)
		switch r := r.(type) {
		case *Claimed:
			b = r.appendJSON(b)
		case *StepStarted:
			b = strconv.AppendInt(append(b, `{"step":`...), int64(r.Step), 10)
			b = appendOptional(b, `,"stepId":`, r.StepID)
			b = append(appendOptional(b, `,"purpose":`, string(r.Purpose)), '}')
		case *ModelReplied:
			b = r.appendJSON(b)
		case *ToolStarted:
			b = strconv.AppendInt(append(b, `{"step":`...), int64(r.Step), 10)
			b = appendCall(append(b, `,"call":`...), &r.Call)
			b = append(appendOptional(b, `,"stepId":`, r.StepID), '}')
		case *ToolReturned:
			b = r.appendJSON(b)
		case *StepEnded:
			b = strconv.AppendInt(append(b, `{"step":`...), int64(r.Step), 10)
			b = appendString(append(b, `,"status":`...), string(r.Status))
			b = appendOptional(b, `,"stepId":`, r.StepID)
			b = append(appendOptional(b, `,"reason":`, r.Reason), '}')
		case *Finished:
			b = r.appendJSON(b)
		default:
			raw, err := json.Marshal(r)
			if err != nil {
				return nil, err
			}
			b = append(b, raw...)
		}
		b = append(b, '}')
	}
	return append(b, ']'), nil
}

func (r *Claimed) appendJSON(b []byte) []byte {
	b = appendString(append(b, `{"claim":`...), r.Claim)
	b = appendString(append(b, `,"worker":`...), r.Worker)
	b = strconv.AppendUint(append(b, `,"ticket":`...), r.Ticket, 10)
	if r.Delivery != 0 {
		b = strconv.AppendInt(append(b, `,"delivery":`...), int64(r.Delivery), 10)
	}
	b = appendOptional(b, `,"resumes":`, r.Resumes)
	if len(r.Tools) > 0 {
		b = appendRest(append(b, `,"tools":`...), r.Tools)
	}
	return append(b, '}')
}

func (r *ModelReplied) appendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"step":`...), int64(r.Step), 10)
	b = appendString(append(b, `,"message":{"role":`...), string(r.Message.Role))
	b = appendBlocks(append(b, `,"content":`...), r.Message.Content)
	b = appendString(append(b, `},"stop":`...), string(r.Stop))
	b = appendUsage(&r.Usage, append(b, `,"usage":`...))
	b = appendOptional(b, `,"provider":`, r.Provider)
	b = appendOptional(b, `,"model":`, r.Model)
	b = strconv.AppendInt(append(b, `,"millis":`...), r.Millis, 10)
	b = appendTrue(b, `,"cached":`, r.Cached)
	b = appendCost(b, r.Cost)
	b = appendMillis(b, `,"firstTokenMillis":`, r.FirstTokenMillis)
	return append(b, '}')
}

// appendMillis appends a field unless it is 0.
func appendMillis(b []byte, name string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, name...), n, 10)
}

// appendCost appends a cost unless it is unknown.
func appendCost(b []byte, usd *float64) []byte {
	if usd == nil {
		return b
	}
	return appendRest(append(b, `,"cost":`...), *usd)
}

func (r *ToolReturned) appendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"step":`...), int64(r.Step), 10)
	b = appendString(append(b, `,"name":`...), r.Name)
	b = appendResult(append(b, `,"result":`...), &r.Result)
	b = appendOptional(b, `,"code":`, string(r.Code))
	b = strconv.AppendInt(append(b, `,"millis":`...), r.Millis, 10)
	b = appendOptional(b, `,"stepId":`, r.StepID)
	if len(r.Files) > 0 {
		b = appendRest(append(b, `,"files":`...), r.Files)
	}
	if len(r.Meta) > 0 {
		b = appendRest(append(b, `,"meta":`...), r.Meta)
	}
	return append(b, '}')
}

func appendBlocks(b []byte, blocks []messages.Block) []byte {
	if blocks == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, bl := range blocks {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		n := len(b)
		b = appendOptional(b, `"text":`, bl.Text)
		if bl.Image != nil {
			b = appendRest(append(comma(b, n), `"image":`...), bl.Image)
		}
		if bl.File != nil {
			b = appendRest(append(comma(b, n), `"file":`...), bl.File)
		}
		if bl.Reasoning != nil {
			b = appendRest(append(comma(b, n), `"reasoning":`...), bl.Reasoning)
		}
		if bl.ToolCall != nil {
			b = appendCall(append(comma(b, n), `"toolCall":`...), bl.ToolCall)
		}
		if bl.ToolResult != nil {
			b = appendResult(append(comma(b, n), `"toolResult":`...), bl.ToolResult)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendRest appends what is too rare to be written by hand.
func appendRest(b []byte, v any) []byte {
	q, err := json.Marshal(v)
	if err != nil { // what we hold came from JSON, and always encodes
		return append(b, "null"...)
	}
	return append(b, q...)
}

// comma separates a field from those that begin at n, if there are any.
func comma(b []byte, n int) []byte {
	if len(b) > n {
		return append(b, ',')
	}
	return b
}

func appendCall(b []byte, c *messages.ToolCall) []byte {
	b = appendString(append(b, `{"id":`...), c.ID)
	b = appendString(append(b, `,"name":`...), c.Name)
	b = appendString(append(b, `,"arguments":`...), c.Arguments)
	return append(b, '}')
}

func appendResult(b []byte, r *messages.ToolResult) []byte {
	b = appendString(append(b, `{"callId":`...), r.CallID)
	b = appendBlocks(append(b, `,"content":`...), r.Content)
	b = appendTrue(b, `,"isError":`, r.IsError)
	return append(b, '}')
}
