package openai

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// Names of the places where reasoning comes from and goes back to.
const (
	inField    = "reasoning_content"
	inShort    = "reasoning"
	inDetails  = "reasoning_details"
	inParts    = "thinking" // parts of the content
	inMarks    = "think"    // marks in the text; never sent back
	inCallRest = "extra_content"
)

// maxDetails bounds the reasoning details of one reply.
const maxDetails = 256

// opaque is what Reasoning.Opaque holds: enough to send the reasoning back as it came. Text and signature are not in
// it, so that they are in one place only.
type opaque struct {
	Flavour Flavour                    `json:"flavour"`
	As      string                     `json:"as"`
	Detail  map[string]json.RawMessage `json:"detail,omitempty"` // of one entry of reasoning_details
	TextKey string                     `json:"textKey,omitempty"`
	Call    int                        `json:"call,omitempty"`  // the number of a tool call
	Extra   json.RawMessage            `json:"extra,omitempty"` // of that call
}

func (o *opaque) String() string {
	raw, err := json.Marshal(o)
	if err != nil {
		return "" // parts of what was JSON
	}
	return string(raw)
}

// thoughts gathers the reasoning of one reply.
type thoughts struct {
	place   string // of text
	text    strings.Builder
	details []*thought
	extras  map[int]json.RawMessage // of calls, by our number
}

type thought struct {
	kind, index, id string
	textKey         string
	text, data      strings.Builder
	signature       string
	rest            map[string]json.RawMessage
}

// write keeps text, and returns it for the stream.
func (t *thoughts) write(place, text string) string {
	if text != "" {
		t.place = place
		t.text.WriteString(text)
	}
	return text
}

// detail adds one entry of reasoning_details, a whole one or a piece, and returns its text.
func (t *thoughts) detail(d map[string]json.RawMessage) (string, error) {
	kind, index, id := stringOf(d["type"]), string(d["index"]), stringOf(d["id"])
	var to *thought
	for _, x := range t.details {
		if x.kind == kind && x.index == index && (id == "" || x.id == "" || x.id == id) {
			to = x
		}
	}
	if to == nil {
		if len(t.details) == maxDetails {
			return "", errors.New("more than 256 parts of reasoning")
		}
		to = &thought{kind: kind, index: index, textKey: "text", rest: map[string]json.RawMessage{}}
		if kind == "reasoning.summary" {
			to.textKey = "summary"
		}
		t.details = append(t.details, to)
	}
	if id != "" {
		to.id = id
	}
	text := stringOf(d[to.textKey])
	to.text.WriteString(text)
	to.data.WriteString(stringOf(d["data"]))
	if s := stringOf(d["signature"]); s != "" {
		to.signature = s
	}
	for k, v := range d {
		if k != to.textKey && k != "data" && k != "signature" && string(v) != "null" && len(to.rest) < maxDetails {
			to.rest[k] = v
		}
	}
	return text, nil
}

// extra keeps what belongs to a call.
func (t *thoughts) extra(call int, raw json.RawMessage) {
	if t.extras == nil {
		t.extras = map[int]json.RawMessage{}
	}
	t.extras[call] = raw
}

// blocks is the reasoning in the form of a message; extras belong to its calls, by their place.
func (t *thoughts) blocks(f Flavour, extras map[int]json.RawMessage) []messages.Block {
	var out []messages.Block
	add := func(text, signature string, o opaque) {
		o.Flavour = f
		out = append(out, messages.Block{Reasoning: &messages.Reasoning{
			Family: family, Text: text, Signature: signature, Opaque: o.String(),
		}})
	}
	for _, d := range t.details {
		if d.data.Len() > 0 {
			d.rest["data"], _ = json.Marshal(d.data.String()) // a string always encodes
		}
		add(d.text.String(), d.signature, opaque{As: inDetails, Detail: d.rest, TextKey: d.textKey})
	}
	if t.text.Len() > 0 && len(t.details) == 0 {
		add(t.text.String(), "", opaque{As: t.place})
	}
	for n := range maxCalls {
		if extra, ok := extras[n]; ok {
			add("", "", opaque{As: inCallRest, Call: n, Extra: extra})
		}
	}
	return out
}

// echoed is what goes back of the reasoning of one message.
type echoed struct {
	fields map[string]json.RawMessage // of the message
	calls  map[int]json.RawMessage    // extra_content, by the number of the call
}

// echo gives the reasoning of a message of the model back, to the flavour that it is from.
func (f Flavour) echo(m *messages.Message) echoed {
	out := echoed{map[string]json.RawMessage{}, map[int]json.RawMessage{}}
	text := map[string]string{}
	var details []map[string]json.RawMessage
	for _, b := range m.Content {
		r := b.Reasoning
		if r == nil || r.Family != family {
			continue
		}
		var o opaque
		if json.Unmarshal([]byte(r.Opaque), &o) != nil || o.Flavour != f {
			continue
		}
		switch o.As {
		case inField, inShort, inParts:
			text[o.As] += r.Text
		case inDetails:
			details = append(details, o.detail(r))
		case inCallRest:
			out.calls[o.Call] = o.Extra
		}
	}
	if f == DeepSeek { // which wants the field in every message of a model that thinks
		text[inField] += ""
	}
	for place, s := range text {
		if place == inParts {
			out.fields["content"] = encode(thinkingParts(s, m.Text()))
			continue
		}
		out.fields[place] = encode(s)
	}
	if details != nil {
		out.fields[inDetails] = encode(details)
	}
	return out
}

func (o *opaque) detail(r *messages.Reasoning) map[string]json.RawMessage {
	d := map[string]json.RawMessage{}
	maps.Copy(d, o.Detail)
	if r.Text != "" && o.TextKey != "" {
		d[o.TextKey] = encode(r.Text)
	}
	if r.Signature != "" {
		d["signature"] = encode(r.Signature)
	}
	return d
}

type textPart struct {
	Type     string     `json:"type"`
	Text     string     `json:"text,omitempty"`
	Thinking []textPart `json:"thinking,omitempty"`
}

func thinkingParts(thinking, text string) []textPart {
	out := []textPart{{Type: "thinking", Thinking: []textPart{{Type: "text", Text: thinking}}}}
	if text != "" {
		out = append(out, textPart{Type: "text", Text: text})
	}
	return out
}

// encode is for values that always encode.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

func stringOf(raw json.RawMessage) string {
	var s looseString
	if len(raw) == 0 {
		return ""
	}
	_ = s.UnmarshalJSON(raw) // never fails
	return string(s)
}
