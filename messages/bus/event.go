package bus

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/jsonscan"
	"github.com/longshore-run/longshore/messages/strict"
)

// EveryEvent matches the events of all runs.
const EveryEvent = "events.>"

// Event reads an event and checks that it is one of the run and the name in its subject; if not, it is counted.
func (b *Bus) Event(m Message) (messages.Event, bool) {
	subject := strings.Split(m.Subject, ".")
	if len(subject) != 4 || subject[0] != "events" {
		b.Foreign()
		return messages.Event{}, false
	}
	e, err := readEvent(m.Data)
	if err != nil || !IsOf(&e, messages.Ref{Tenant: subject[1], Run: subject[2]}, subject[3]) {
		b.Foreign()
		return messages.Event{}, false
	}
	return e, true
}

// readEvent is json.Unmarshal, in less than half of its time for an event in the form in which encoding/json writes it, as ours are.
// The data of such an event is a part of the input, which must not change.
func readEvent(data []byte) (e messages.Event, err error) {
	if e, ok := readWritten(data); ok {
		return e, nil
	}
	err = json.Unmarshal(data, &e)
	return e, err
}

// readWritten reads an event that has its fields in their order, without spaces and without escapes before its data. Anything
// else, right or wrong, it leaves to others.
func readWritten(data []byte) (e messages.Event, ok bool) {
	head, body, found := bytes.Cut(data, []byte(`,"data":`))
	body, closed := bytes.CutSuffix(body, []byte("}"))
	if !found || !closed || len(body) == 0 || isSpace(body[0]) || isSpace(body[len(body)-1]) || !jsonscan.Valid(body) {
		return e, false
	}
	rest, opened := strings.CutPrefix(string(head), "{")
	var at string
	for _, f := range []struct {
		key  string
		into *string
	}{
		{`"specversion":"`, &e.SpecVersion},
		{`,"id":"`, &e.ID},
		{`,"source":"`, &e.Source},
		{`,"type":"`, &e.Type},
		{`,"subject":"`, &e.Subject},
		{`,"time":"`, &at},
		{`,"datacontenttype":"`, &e.DataContentType},
		{`,"sequence":"`, &e.Sequence},
		{`,"traceparent":"`, &e.Traceparent},
	} {
		if rest == "" && f.into == &e.Traceparent {
			break
		}
		if rest, ok = strings.CutPrefix(rest, f.key); !ok {
			return messages.Event{}, false
		}
		if *f.into, rest, ok = strings.Cut(rest, `"`); !ok || !isPlain(*f.into) {
			return messages.Event{}, false
		}
	}
	if !opened || rest != "" || e.Time.UnmarshalText([]byte(at)) != nil {
		return messages.Event{}, false
	}
	e.Data = slices.Clip(body)
	return e, true
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// isPlain reports whether a text stands for itself in JSON.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '\\' {
			return false
		}
	}
	return true
}

// IsOf reports whether an event is one of a run and has a name.
func IsOf(e *messages.Event, run messages.Ref, name string) bool {
	return run.Check() == nil && strict.ValidToken(name) && e.Number() > 0 && e.Source == "/tenants/"+run.Tenant &&
		e.Subject == run.Run && e.Type == "longshore."+name+".v1"
}

// Foreign counts a message on a subject of ours that is not what the subject says.
func (b *Bus) Foreign() { b.skipped.Add(1) }
