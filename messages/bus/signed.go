package bus

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// headerSignature holds the signature of an entry that says what people decided.
const headerSignature = "Longshore-Signature"

// headerExpectOf would let an entry stand elsewhere than where it says. We never set it.
const headerExpectOf = "Nats-Expected-Last-Subject-Sequence-Subject"

// signingContext keeps a signature of ours from being one of something else.
const signingContext = "longshore control 1\n"

// signed is what a signature of an entry covers: its run, its place in the log, its head, and its body as it is stored,
// or the name of the blob, which holds the body's hash. The place is given anew for each try, and so is the signature.
func signed(run messages.Ref, last uint64, m *nats.Msg) []byte {
	out := append([]byte(signingContext), associated(run, last, m.Header.Get(headerHead))...)
	out = append(out, '\n')
	out = append(out, m.Header.Get(headerBlob)...)
	out = append(out, '\n')
	return append(out, m.Data...)
}

// sign signs an entry that says what people decided, if there is a key.
func (b *Bus) sign(run messages.Ref, last uint64, head *record.Head, m *nats.Msg) {
	if b.signer.key == nil || !head.Decides() {
		return
	}
	m.Header.Set(headerSignature, base64.StdEncoding.EncodeToString(ed25519.Sign(b.signer.key, signed(run, last, m))))
}

// unsigned reports whether a message of a log says what people decided without a signature that counts here, and returns
// its head then.
func (b *Bus) unsigned(run messages.Ref, m Message) (record.Head, bool) {
	if !b.keys.Any() {
		return record.Head{}, false
	}
	head, err := record.DecodeHead(m.Header.Get(headerHead))
	if err != nil || !head.Decides() { // an error shows when the entry is read
		return record.Head{}, false
	}
	return head, !b.isSigned(run, m)
}

func (b *Bus) isSigned(run messages.Ref, m Message) bool {
	for _, once := range []string{headerExpect, headerHead, headerSignature} {
		if len(m.Header.Values(once)) != 1 {
			return false
		}
	}
	last, err := follows(m)
	if err != nil || m.Header.Get(headerExpectOf) != "" || len(m.Header.Values(headerBlob)) > 1 {
		return false
	}
	signature, err := base64.StdEncoding.DecodeString(m.Header.Get(headerSignature))
	if err != nil {
		return false
	}
	return b.keys.verify(signed(run, last, &nats.Msg{Header: m.Header, Data: m.Data}), signature)
}

// disregard reads an entry that does not count. Prev is the head before it; nil: it is looked for.
func (b *Bus) disregard(ctx context.Context, run messages.Ref, m Message, head record.Head, prev *record.Head, decode decoder) (record.Entry, error) {
	b.ignored.note(b, run, m.Seq, &head)
	if after, err := follows(m); err == nil && after == 0 && head.Has(record.KindStarted) {
		e, err := decode(ctx, run, m)
		if err != nil {
			return e, err
		}
		return e.Undecided(), nil
	}
	if prev == nil {
		before, err := b.headBefore(ctx, run, m.Seq)
		if err != nil {
			return record.Entry{Seq: m.Seq}, err
		}
		prev = &before
	}
	return record.Entry{Seq: m.Seq, Head: head}.Ignored(*prev), nil
}

// headBefore is the head that holds before a sequence of a log. It reads the log from its begin, for heads of entries
// that do not count cannot be believed; without a forger there are none.
func (b *Bus) headBefore(ctx context.Context, run messages.Ref, seq uint64) (head record.Head, err error) {
	for e, err := range b.Heads(ctx, run, 0, seq-1) {
		if err != nil {
			return head, fmt.Errorf("read %s before %d: %w", run, seq, err)
		}
		if e.Seq >= seq {
			break
		}
		head = e.Head
	}
	return head, nil
}

// maxNoted bounds how many entries are told apart; then it begins anew.
const maxNoted = 1024

// ignoredEntries counts the entries that did not count, each once.
type ignoredEntries struct {
	mu    sync.Mutex
	seen  map[uint64]struct{} // by sequence in RUNS
	total uint64
}

func (i *ignoredEntries) note(b *Bus, run messages.Ref, seq uint64, head *record.Head) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.seen[seq]; known {
		return
	}
	if i.seen == nil || len(i.seen) >= maxNoted {
		i.seen = map[uint64]struct{}{}
	}
	i.seen[seq] = struct{}{}
	i.total++
	b.log.Warn("a decision without a valid signature is ignored: it is forged, or a dispatcher does not sign with a key of LONGSHORE_CONTROL_KEYS",
		"task_id", run.Run, "tenant", run.Tenant, "sequence", seq, "kinds", head.Kinds)
}

// Ignored is how many entries with decisions did not count, for they had no valid signature.
func (b *Bus) Ignored() uint64 {
	b.ignored.mu.Lock()
	defer b.ignored.mu.Unlock()
	return b.ignored.total
}
