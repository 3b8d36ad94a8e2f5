package bus

import (
	"encoding/json"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// EveryEvent matches the events of all runs.
const EveryEvent = "events.>"

// Event reads an event and checks that it is one of the run and the name in its subject; if not, it is counted.
func (b *Bus) Event(m Message) (messages.Event, bool) {
	var e messages.Event
	subject := strings.Split(m.Subject, ".")
	if len(subject) != 4 || subject[0] != "events" || json.Unmarshal(m.Data, &e) != nil || !IsOf(&e, messages.Ref{Tenant: subject[1], Run: subject[2]}, subject[3]) {
		b.Foreign()
		return messages.Event{}, false
	}
	return e, true
}

// IsOf reports whether an event is one of a run and has a name.
func IsOf(e *messages.Event, run messages.Ref, name string) bool {
	return run.Check() == nil && strict.ValidToken(name) && e.Number() > 0 && e.Source == "/tenants/"+run.Tenant &&
		e.Subject == run.Run && e.Type == "longshore."+name+".v1"
}

// Foreign counts a message on a subject of ours that is not what the subject says.
func (b *Bus) Foreign() { b.skipped.Add(1) }
