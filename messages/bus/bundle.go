package bus

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// maxBundled is how many events a message may be. Ours are far fewer.
const maxBundled = 1024

// Each yields the events of a message of EVENTS in their order, with the bytes of each: the one event that it is, or those of a bundle. What
// is not an event of the run in the subject is left out and counted. The bytes are a part of the message.
func (b *Bus) Each(m Message) iter.Seq2[messages.Event, []byte] {
	return func(yield func(messages.Event, []byte) bool) {
		if !strings.HasSuffix(m.Subject, "."+messages.NameBundle) {
			if e, ok := b.Event(m); ok {
				yield(e, m.Data)
			}
			return
		}
		run, ok := messages.RunOfEvent(m.Subject)
		if !ok {
			b.Foreign()
			return
		}
		all, ok := cutWritten(m.Data)
		if !ok {
			all, ok = cutAny(m.Data)
		}
		if !ok {
			b.Foreign()
			return
		}
		for i := range all {
			e := &all[i].event
			if e.Name() == messages.NameBundle || !IsOf(e, run, e.Name()) {
				b.Foreign()
				continue
			}
			if !yield(*e, all[i].text) {
				return
			}
		}
	}
}

// bundled is an element of a bundle; the event is empty when it is none.
type bundled struct {
	event messages.Event
	text  []byte
}

// between is where one event ends and the next one begins in a bundle as we write it. In a text its quotes would be escaped; where it stands
// in the data of an event, what is cut there is not an event.
const between = `},{"specversion":"`

// cutWritten cuts a bundle in the form in which we write it, which is faster than a decoder. Anything else, right or wrong, it leaves to others.
func cutWritten(data []byte) (all []bundled, ok bool) {
	rest, opened := bytes.CutPrefix(data, []byte("["))
	rest, closed := bytes.CutSuffix(rest, []byte("]"))
	if !opened || !closed {
		return nil, false
	}
	for {
		one, after := rest, []byte(nil)
		if i := bytes.Index(rest, []byte(between)); i >= 0 {
			one, after = rest[:i+1], rest[i+2:]
		}
		e, ok := readWritten(one)
		if !ok || len(all) == maxBundled {
			return nil, false
		}
		if all = append(all, bundled{e, one}); after == nil {
			return all, true
		}
		rest = after
	}
}

// cutAny cuts a JSON array; ok is false when it is none, or has too many elements.
func cutAny(data []byte) (all []bundled, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, false
	}
	for d.More() {
		var text json.RawMessage
		if len(all) == maxBundled || d.Decode(&text) != nil {
			return nil, false
		}
		e, _ := readEvent(text) // an empty one is of no run
		all = append(all, bundled{e, text})
	}
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return all, errors.Is(err, io.EOF)
}
