package bus

import (
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// CheckRequest returns an error unless a message was sent by a client that waits for the answer at an inbox.
//
// A NATS server publishes in its own name on any subject that a client names: it answers JetStream requests there, delivers
// stored messages, acknowledges what it stored. A client without the right to make a request could so have the server make
// it. What comes in that way has no inbox for its answer, or carries the headers of a stored message.
func CheckRequest(m *nats.Msg) error {
	switch {
	case m.Reply == "":
		return errors.New("the request names no inbox for its answer")
	case !IsInbox(m.Reply):
		return errors.New("the reply subject is not an inbox")
	}
	for _, name := range []string{
		jetstream.StreamHeader, jetstream.SubjectHeader, jetstream.SequenceHeader, jetstream.TimeStampHeaer,
		jetstream.LastSequenceHeader, headerPending, jetstream.SchedulerHeader, StatusHeader,
	} {
		if _, ok := m.Header[name]; ok {
			return errors.New("it is a message of a stream, not a request")
		}
	}
	return nil
}

// IsInbox reports whether a subject is one for answers. Who asks names it, and no server holds it against what he may
// publish: with any other we would write in his place, with our own permissions. Inboxes, and what servers make of them
// between accounts and clusters, begin with an underscore; nothing of the fleet does.
func IsInbox(subject string) bool { return strings.HasPrefix(subject, "_") }
