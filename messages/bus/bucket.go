package bus

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// bucket is a KV bucket whose keys keep their revisions.
type bucket struct {
	stream, Prefix string
	signed         bool // by dispatchers with a key; where there are control keys nothing else counts
}

// bucketOf is a KV bucket by its name.
func bucketOf(name string, signed bool) bucket {
	return bucket{"KV_" + name, "$KV." + name + ".", signed}
}

// The buckets whose keys keep their revisions.
//
//nolint:gochecknoglobals // constants
var (
	AgentsBucket    = bucketOf(BucketAgents, true)
	PromptsBucket   = bucketOf(BucketPrompts, true)
	QuotasBucket    = bucketOf(BucketQuotas, true)
	KeysBucket      = bucketOf(BucketKeys, true)
	SchedulesBucket = bucketOf(BucketSchedules, false)
)

// maxPuts bounds how often an edit races with another.
const maxPuts = 10

const (
	headerBy        = "Longshore-By" // who made the revision
	headerOperation = "KV-Operation"
	operationDelete = "DEL"
)

// At reads a revision of a key that counts, or the newest for 0, from the bucket's leader. What was removed is there too.
func (in bucket) At(ctx context.Context, b *Bus, name string, revision uint64) (Message, bool, error) {
	if revision == 0 {
		m, _, ok, err := in.Newest(ctx, b, name)
		return m, ok, err
	}
	m, ok, err := b.Stream(in.stream).Get(ctx, Lookup{Seq: revision})
	return m, ok && m.Subject == in.Prefix+name && b.counts(ctx, in, name, m), err
}

// Edit is a change of a key.
type Edit struct {
	Name       string
	Body       []byte // nil: remove it
	By         string
	IfRevision *uint64 // only if this is the newest; 0: only if there is none
}

// Apply makes an edit; it takes effect as a whole or not at all, also under concurrent edits. What is so already makes
// no new revision: changed is then false and the change the one that is there. The error is messages.ErrRevision if
// IfRevision did not hold.
func (in bucket) Apply(ctx context.Context, b *Bus, e Edit) (change control.Change, changed bool, err error) {
	if e.Body != nil {
		if err := b.CheckSize(e.Body); err != nil {
			return change, false, err
		}
	}
	for try := range maxPuts {
		last, top, found, err := in.Newest(ctx, b, e.Name)
		if err != nil {
			return change, false, err
		}
		here := ChangeOf(e.Name, last)
		isThere := found && !here.Deleted
		newest := last.Seq
		if !isThere {
			newest = 0
		}
		same := last.Seq == top.Seq && (isThere && e.Body != nil && bytes.Equal(last.Data, e.Body) || !isThere && e.Body == nil)
		switch {
		case same && try > 0: // an answer that was lost
			return here, here.By == named(e.By), nil
		case e.IfRevision != nil && *e.IfRevision != newest:
			return change, false, fmt.Errorf("%w: its newest revision is %d, not %d", messages.ErrRevision, newest, *e.IfRevision)
		case same:
			return here, false, nil
		}
		m := &nats.Msg{Subject: in.Prefix + e.Name, Header: nats.Header{headerBy: {named(e.By)}}, Data: e.Body}
		if e.Body == nil {
			m.Header.Set(headerOperation, operationDelete)
		}
		Expect(m, top.Seq)
		b.signRevision(in, e.Name, top.Seq, m)
		r, err := b.Store(ctx, m)
		if Refused(err, CodeWrongLast) {
			continue // another client was faster
		}
		if err != nil {
			return change, false, err
		}
		m2, ok, err := in.At(ctx, b, e.Name, r.Seq) // for the time that the stream gave it
		if err != nil || !ok {
			m2 = Message{Seq: r.Seq, Header: m.Header}
		}
		return ChangeOf(e.Name, m2), true, nil
	}
	return change, false, fmt.Errorf("%s: other clients keep changing it; try again", e.Name)
}

// named is the name that a caller gives itself, on one line. Revisions of before names were kept have none.
func named(by string) string {
	by = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, by)
	if by = strings.TrimSpace(by); by == "" {
		return "unknown"
	}
	return by
}

// ChangeOf is what a revision of a key changed.
func ChangeOf(name string, m Message) control.Change {
	return control.Change{Name: name, Revision: m.Seq, At: m.Time, By: m.Header.Get(headerBy), Deleted: IsRemoved(m)}
}

// History is what the bucket keeps of a key, newest first; empty when it never was.
func (in bucket) History(ctx context.Context, b *Bus, name string) ([]control.Change, error) {
	out := []control.Change{}
	for from := uint64(1); ; {
		m, ok, err := b.Stream(in.stream).Get(ctx, Lookup{Seq: from, Next: in.Prefix + name})
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w", name, err)
		}
		if !ok {
			break
		}
		if b.counts(ctx, in, name, m) {
			out = append(out, ChangeOf(name, m))
		}
		from = m.Seq + 1
	}
	slices.Reverse(out)
	return out, nil
}

// IsRemoved reports whether a message of a bucket marks that its key is gone.
func IsRemoved(m Message) bool {
	return m.Header.Get("KV-Operation") != "" || m.Header.Get("Nats-Marker-Reason") != ""
}
