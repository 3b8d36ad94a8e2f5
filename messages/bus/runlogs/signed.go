package runlogs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
)

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
func (st *Store) sign(run messages.Ref, last uint64, head *record.Head, m *nats.Msg) {
	if signer := st.bus.Signer(); signer.Any() && head.Decides() {
		m.Header.Set(bus.HeaderSignature, signer.Sign(signed(run, last, m)))
	}
}

// unsigned reports whether a message of a log says what people decided without a signature that counts here, and returns
// its head then.
func (st *Store) unsigned(run messages.Ref, m bus.Message) (record.Head, bool) {
	if !st.bus.Keys().Any() {
		return record.Head{}, false
	}
	head, err := record.DecodeHead(m.Header.Get(headerHead))
	if err != nil || !head.Decides() { // an error shows when the entry is read
		return record.Head{}, false
	}
	return head, !st.isSigned(run, m)
}

func (st *Store) isSigned(run messages.Ref, m bus.Message) bool {
	for _, once := range []string{bus.HeaderExpect, headerHead, bus.HeaderSignature} {
		if len(m.Header.Values(once)) != 1 {
			return false
		}
	}
	last, err := m.Follows()
	if err != nil || m.Header.Get(bus.HeaderExpectFor) != "" || len(m.Header.Values(headerBlob)) > 1 {
		return false
	}
	return st.bus.Keys().Verify(signed(run, last, &nats.Msg{Header: m.Header, Data: m.Data}), m.Header.Get(bus.HeaderSignature))
}

// disregard reads an entry that does not count. Prev is the head before it; nil: it is looked for.
func (st *Store) disregard(ctx context.Context, run messages.Ref, m bus.Message, head record.Head, prev *record.Head, decode decoder) (record.Entry, error) {
	st.ignored.note(st.bus.Log(), run, m.Seq, &head)
	if after, err := m.Follows(); err == nil && after == 0 && head.Has(record.KindStarted) {
		e, err := decode(ctx, run, m)
		if err != nil {
			return e, err
		}
		return e.Undecided(), nil
	}
	if prev == nil {
		before, err := st.headBefore(ctx, run, m.Seq)
		if err != nil {
			return record.Entry{Seq: m.Seq}, err
		}
		prev = &before
	}
	return record.Entry{Seq: m.Seq, Head: head}.Ignored(*prev), nil
}

// headBefore is the head that holds before a sequence of a log. It reads the log from its begin, for heads of entries
// that do not count cannot be believed; without a forger there are none.
func (st *Store) headBefore(ctx context.Context, run messages.Ref, seq uint64) (head record.Head, err error) {
	for e, err := range st.Heads(ctx, run, 0, seq-1) {
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

// ignoredEntry is the sequence of an entry in the stream that has its run.
type ignoredEntry struct {
	run messages.Ref
	seq uint64
}

// ignoredEntries counts the entries that did not count, each once.
type ignoredEntries struct {
	mu    sync.Mutex
	seen  map[ignoredEntry]struct{}
	total uint64
}

func (i *ignoredEntries) note(log *slog.Logger, run messages.Ref, seq uint64, head *record.Head) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.seen[ignoredEntry{run, seq}]; known {
		return
	}
	if i.seen == nil || len(i.seen) >= maxNoted {
		i.seen = map[ignoredEntry]struct{}{}
	}
	i.seen[ignoredEntry{run, seq}] = struct{}{}
	i.total++
	log.Warn("a decision without a valid signature is ignored: it is forged, or a dispatcher does not sign with a key of LONGSHORE_CONTROL_KEYS",
		"task_id", run.Run, "tenant", run.Tenant, "sequence", seq, "kinds", head.Kinds)
}

// Ignored is how many entries with decisions did not count, for they had no valid signature.
func (st *Store) Ignored() uint64 {
	st.ignored.mu.Lock()
	defer st.ignored.mu.Unlock()
	return st.ignored.total
}
