package runlogs

import "github.com/longshore-run/longshore/messages"

// Limits of a bundle: a watcher sees its events at once, and a page of events has all of them or none.
const (
	maxBundle      = 32
	maxBundleBytes = 128 << 10
)

// bundle gathers events of one run that are sent as one message, one after the other by their numbers.
type bundle struct {
	before      uint64 // the entry before that of the first
	letters     []letter
	first, last string // sequences
	bytes       int
}

// fits reports whether one more may be added.
func (b *bundle) fits(l *letter) bool {
	return len(b.letters) == 0 || len(b.letters) < maxBundle && b.bytes+len(l.body) <= maxBundleBytes
}

// earliest is the earlier of the entry before the bundle's first and another one. What flies before the bundle is no reason to believe that the
// bundle is stored.
func (b *bundle) earliest(before uint64) uint64 {
	if len(b.letters) == 0 {
		return before
	}
	return b.before
}

func (b *bundle) add(before uint64, l letter, sequence string) {
	if len(b.letters) == 0 {
		b.before, b.first = before, sequence
	}
	b.letters, b.last, b.bytes = append(b.letters, l), sequence, b.bytes+len(l.body)+1
}

// close sends what was gathered; one event alone as such.
func (b *bundle) close(o *outbox, fly func(before uint64, l letter)) {
	switch len(b.letters) {
	case 0:
		return
	case 1:
		fly(b.before, b.letters[0])
	default:
		fly(b.before, b.seal(o))
	}
	clear(b.letters)
	b.letters, b.bytes = b.letters[:0], 0
}

func (b *bundle) seal(o *outbox) letter {
	body := make([]byte, 0, b.bytes+1)
	for i, l := range b.letters {
		body = append(append(body, "[,"[min(i, 1)]), l.body...)
	}
	return letter{
		subject: o.subject(messages.NameBundle), id: o.ids + b.first + "-" + b.last, body: append(body, ']'), trace: b.letters[0].trace,
	}
}
