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
)

// bucket is a KV bucket whose keys keep their revisions.
type bucket struct {
	stream, prefix string
	signed         bool // by dispatchers with a key; where there are control keys nothing else counts
}

// The buckets.
var (
	agentsBucket  = bucket{streamAgents, agentPrefix, true}    //nolint:gochecknoglobals // a constant
	promptsBucket = bucket{streamPrompts, promptsPrefix, true} //nolint:gochecknoglobals // a constant
	quotasBucket  = bucket{streamQuotas, quotasPrefix, true}   //nolint:gochecknoglobals // a constant
)

const (
	headerBy        = "Longshore-By" // who made the revision
	headerOperation = "KV-Operation"
	operationDelete = "DEL"
)

// at reads a revision of a key that counts, or the newest for 0, from the bucket's leader. What was removed is there too.
func (b *Bus) at(ctx context.Context, in bucket, name string, revision uint64) (stored, bool, error) {
	if revision == 0 {
		m, _, ok, err := b.newest(ctx, in, name)
		return m, ok, err
	}
	m, ok, err := b.get(ctx, in.stream, lookup{Seq: revision})
	return m, ok && m.subject == in.prefix+name && b.counts(ctx, in, name, m), err
}

// edit is a change of a key.
type edit struct {
	name       string
	body       []byte // nil: remove it
	by         string
	ifRevision *uint64 // only if this is the newest; 0: only if there is none
}

// apply makes an edit; it takes effect as a whole or not at all, whoever else edits. What is so already makes no new
// revision: changed is then false and the change the one that is there. messages.ErrRevision: ifRevision did not hold.
func (b *Bus) apply(ctx context.Context, in bucket, e edit) (change messages.Change, changed bool, err error) {
	if e.body != nil {
		if err := b.checkSize(e.body); err != nil {
			return change, false, err
		}
	}
	for try := range maxPuts {
		last, top, found, err := b.newest(ctx, in, e.name)
		if err != nil {
			return change, false, err
		}
		here := changeOf(e.name, last)
		isThere := found && !here.Deleted
		newest := last.seq
		if !isThere {
			newest = 0
		}
		same := last.seq == top.seq && (isThere && e.body != nil && bytes.Equal(last.data, e.body) || !isThere && e.body == nil)
		switch {
		case same && try > 0: // an answer that was lost
			return here, here.By == named(e.by), nil
		case e.ifRevision != nil && *e.ifRevision != newest:
			return change, false, fmt.Errorf("%w: its newest revision is %d, not %d", messages.ErrRevision, newest, *e.ifRevision)
		case same:
			return here, false, nil
		}
		m := &nats.Msg{Subject: in.prefix + e.name, Header: nats.Header{headerBy: {named(e.by)}}, Data: e.body}
		if e.body == nil {
			m.Header.Set(headerOperation, operationDelete)
		}
		expect(m, top.seq)
		b.signRevision(in, e.name, top.seq, m)
		r, err := b.store(ctx, m)
		if refused(err, codeWrongLast) {
			continue // somebody was faster
		}
		if err != nil {
			return change, false, err
		}
		m2, ok, err := b.at(ctx, in, e.name, r.Seq) // for the time that the stream gave it
		if err != nil || !ok {
			m2 = stored{seq: r.Seq, header: m.Header}
		}
		return changeOf(e.name, m2), true, nil
	}
	return change, false, fmt.Errorf("%s: others change it all the time", e.name)
}

// named is what somebody calls himself, on one line. Revisions of before names were kept have none.
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

func changeOf(name string, m stored) messages.Change {
	return messages.Change{Name: name, Revision: m.seq, At: m.time, By: m.header.Get(headerBy), Deleted: isRemoved(m)}
}

// history is what the bucket keeps of a key, newest first; empty when it never was.
func (b *Bus) history(ctx context.Context, in bucket, name string) ([]messages.Change, error) {
	out := []messages.Change{}
	for from := uint64(1); ; {
		m, ok, err := b.get(ctx, in.stream, lookup{Seq: from, Next: in.prefix + name})
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w", name, err)
		}
		if !ok {
			break
		}
		if b.counts(ctx, in, name, m) {
			out = append(out, changeOf(name, m))
		}
		from = m.seq + 1
	}
	slices.Reverse(out)
	return out, nil
}
