package bus

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// maxNoted bounds how many revisions are told apart; then it begins anew.
const maxNoted = 1024

// revisionContext keeps a signature of a revision from being one of something else.
const revisionContext = "longshore bucket 1\n"

// revision is what a signature of a revision covers: the bucket, the key, the revision before, so that it cannot be stored
// again, what it does, who made it, and the body.
func revision(in bucket, name string, last uint64, header nats.Header, body []byte) []byte {
	out := append([]byte(revisionContext), in.stream...)
	for _, part := range []string{name, strconv.FormatUint(last, 10), header.Get(headerOperation), header.Get(headerBy)} {
		out = append(out, '\n')
		out = append(out, part...)
	}
	return append(append(out, '\n'), body...)
}

// signRevision signs what is to be stored after a revision, if there is a key.
func (b *Bus) signRevision(in bucket, name string, last uint64, m *nats.Msg) {
	if b.signer.Any() && in.signed {
		m.Header.Set(HeaderSignature, b.signer.Sign(revision(in, name, last, m.Header, m.Data)))
	}
}

// isSignedBy reports whether a revision has a valid signature of one of the keys.
func (m Message) isSignedBy(keys ControlKeys, in bucket, name string) bool {
	if len(m.Header.Values(HeaderExpect)) != 1 || len(m.Header.Values(HeaderSignature)) != 1 || m.Header.Get(HeaderExpectFor) != "" ||
		len(m.Header.Values(headerBy)) > 1 || len(m.Header.Values(headerOperation)) > 1 {
		return false
	}
	last, err := m.Follows()
	return err == nil && keys.Verify(revision(in, name, last, m.Header, m.Data), m.Header.Get(HeaderSignature))
}

// counts reports whether a revision counts here: where there are keys only what one of them has signed does.
func (b *Bus) counts(ctx context.Context, in bucket, name string, m Message) bool {
	if !in.signed || !b.keys.Any() || m.isSignedBy(b.keys, in, name) {
		return true
	}
	if b.forged.first(in.stream, m.Seq) {
		b.log.WarnContext(ctx, "a revision without a valid signature is ignored: it is forged, or was stored before LONGSHORE_CONTROL_KEYS was set",
			"bucket", strings.TrimPrefix(in.stream, "KV_"), "key", name, "revision", m.Seq)
	}
	return false
}

// Newest is the newest revision of a key that counts, and the newest that is stored, from the bucket's leader.
func (in bucket) Newest(ctx context.Context, b *Bus, name string) (m, top Message, ok bool, err error) {
	top, ok, err = b.Stream(in.stream).Get(ctx, Lookup{Last: in.Prefix + name})
	if err != nil || !ok || b.counts(ctx, in, name, top) {
		return top, top, ok, err
	}
	ok = false
	for from := uint64(1); ; { // few: a bucket keeps 64 revisions, and only a forger makes us look
		next, found, err := b.Stream(in.stream).Get(ctx, Lookup{Seq: from, Next: in.Prefix + name})
		if err != nil || !found {
			return m, top, ok, err
		}
		if b.counts(ctx, in, name, next) {
			m, ok = next, true
		}
		from = next.Seq + 1
	}
}

// forgedRevisions are the revisions that did not count, each once.
type forgedRevisions struct {
	mu    sync.Mutex
	seen  map[string]struct{}
	total uint64
}

// first notes a revision and reports whether it was not noted before.
func (f *forgedRevisions) first(stream string, seq uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := stream + " " + strconv.FormatUint(seq, 10)
	if _, known := f.seen[at]; known {
		return false
	}
	if f.seen == nil || len(f.seen) >= maxNoted {
		f.seen = map[string]struct{}{}
	}
	f.seen[at] = struct{}{}
	f.total++
	return true
}

// IgnoredRevisions is how many revisions of keys, agents, prompts and quotas did not count, for they had no valid signature.
func (b *Bus) IgnoredRevisions() uint64 {
	b.forged.mu.Lock()
	defer b.forged.mu.Unlock()
	return b.forged.total
}

// SignStored signs what the buckets hold and the key of this Bus has not signed: each such entry becomes a new revision, the
// same otherwise. It is for a dispatcher that signs while everything still counts, so it signs nothing where there are control
// keys. It returns how many entries it signed.
func (b *Bus) SignStored(ctx context.Context) (n int, err error) {
	if !b.signer.Any() || b.keys.Any() {
		return 0, nil
	}
	own := ControlKeys{keys: []ed25519.PublicKey{b.signer.public()}}
	for e, err := range b.unsignedRevisions(ctx, own) {
		if err != nil {
			return n, err
		}
		signed := &nats.Msg{Subject: e.in.Prefix + e.name, Header: nats.Header{}, Data: e.m.Data}
		for _, kept := range []string{headerBy, headerOperation} {
			if value := e.m.Header.Get(kept); value != "" {
				signed.Header.Set(kept, value)
			}
		}
		Expect(signed, e.m.Seq)
		b.signRevision(e.in, e.name, e.m.Seq, signed)
		if _, err := b.Store(ctx, signed); err != nil && !Refused(err, CodeWrongLast) { // otherwise another dispatcher has changed and signed it
			return n, fmt.Errorf("sign %s: %w", signed.Subject, err)
		}
		n++
	}
	return n, nil
}

// unsignedRevision is the newest revision of a key, when none of the keys has signed it.
type unsignedRevision struct {
	in   bucket
	name string
	m    Message
}

// unsignedRevisions looks through the buckets whose revisions are signed.
func (b *Bus) unsignedRevisions(ctx context.Context, keys ControlKeys) iter.Seq2[unsignedRevision, error] {
	return func(yield func(unsignedRevision, error) bool) {
		for _, in := range []bucket{KeysBucket, AgentsBucket, PromptsBucket, QuotasBucket} {
			for subject, err := range b.Stream(in.stream).Subjects(ctx, in.Prefix+">") {
				if err != nil {
					yield(unsignedRevision{}, fmt.Errorf("list %s: %w", in.stream, err))
					return
				}
				m, ok, err := b.Stream(in.stream).Get(ctx, Lookup{Last: subject})
				if err != nil {
					yield(unsignedRevision{}, fmt.Errorf("read %s: %w", subject, err))
					return
				}
				name := strings.TrimPrefix(subject, in.Prefix)
				if ok && !m.isSignedBy(keys, in, name) && !yield(unsignedRevision{in, name, m}, nil) {
					return
				}
			}
		}
	}
}

// Unsigned yields what the buckets hold and does not count, for no control key has signed its newest revision, as
// "AGENTS careful". Without control keys there is nothing.
func (b *Bus) Unsigned(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if !b.keys.Any() {
			return
		}
		for e, err := range b.unsignedRevisions(ctx, b.keys) {
			if !yield(strings.TrimPrefix(e.in.stream, "KV_")+" "+e.name, err) {
				return
			}
		}
	}
}
