package runlogs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Append implements runlog.Log. It is one request when all goes well. An answer that was lost costs a look at the
// log for the entry's id before the entry is sent again; after the budget the error is the last one, and the entry
// may be stored or not.
func (st *Store) Append(ctx context.Context, run messages.Ref, last uint64, e record.Entry) (uint64, error) {
	if err := run.Check(); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	buf := st.body()
	defer st.release(buf) // the connection copies what it sends
	m, err := st.encodeEntry(ctx, run, last, &e, buf)
	if err != nil {
		return 0, err
	}
	st.pacer.appends.Add(1)
	defer st.pacer.appends.Add(-1)
	a := appending{st.bus, run, m, last, e.Head.ID, nil}
	var seq uint64
	err = st.bus.Again(ctx, func() (err error) {
		seq, err = a.try(ctx)
		return err
	})
	return seq, err
}

// appending is an append on its way.
type appending struct {
	bus   *bus.Bus
	run   messages.Ref
	msg   *nats.Msg
	last  uint64
	id    string
	doubt error // why it is not known whether the message is stored
}

// try is one attempt: it resolves the doubt of the one before, then sends.
func (a *appending) try(ctx context.Context) (uint64, error) {
	if a.doubt != nil {
		if seq, err := a.resolve(ctx); seq != 0 || err != nil {
			return seq, err
		}
	}
	r, err := a.bus.StoreOnce(ctx, a.msg)
	if err == nil {
		return r.Seq, nil
	}
	a.doubt = err
	if !bus.Refused(err, bus.CodeWrongLast) {
		return 0, err
	}
	seq, err := a.resolve(ctx)
	if seq == 0 && err == nil {
		err = errStaleLeader
	}
	return seq, err
}

// errStaleLeader means that the stream knew of an entry that it then did not show. It is bus.Transient.
var errStaleLeader = &jetstream.APIError{
	Code: 503, Description: "the log has grown and does not show it yet",
}

// resolve looks for the entry right after last: nowhere else can it be. All zero: it is not stored, nor anything
// else in its place.
func (a *appending) resolve(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, a.bus.Answer())
	defer cancel()
	next, ok, err := a.bus.Partitions(bus.StreamRuns).Of(a.run).GetOnce(ctx, bus.Lookup{Seq: a.last + 1, Next: a.run.LogSubject()})
	switch {
	case err != nil:
		return 0, err
	case ok && a.isOwn(next):
		return next.Seq, nil
	case ok, a.isShorter():
		return 0, runlog.ErrConflict
	default:
		return 0, nil
	}
}

func (a *appending) isOwn(m bus.Message) bool {
	head, err := record.DecodeHead(m.Header.Get(headerHead))
	return (err == nil || errors.Is(err, record.ErrNewerVersion)) && head.ID == a.id
}

// isShorter reports whether the stream refused the append because the log ends before last: it was purged, or the
// stream lost its end with its machine's power.
func (a *appending) isShorter() bool {
	refusal, ok := errors.AsType[*jetstream.APIError](a.doubt)
	if !ok || refusal.ErrorCode != bus.CodeWrongLast {
		return false
	}
	_, number, _ := strings.Cut(refusal.Description, ": ")
	end, err := strconv.ParseUint(number, 10, 64)
	return err == nil && end < a.last
}

// Read implements runlog.Log. Entries come in pages from whichever replica answers; where it stops short of through,
// and always for Tail, the stream's leader is asked for the rest.
//
// An error ends it. The entry that comes with record.ErrNewerVersion has its head.
func (st *Store) Read(ctx context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error] {
	return st.read(ctx, run, after, through, st.decodeEntry)
}

// Heads implements runlog.Log: it fetches no blob, opens no seal and decodes no record.
func (st *Store) Heads(ctx context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error] {
	return st.read(ctx, run, after, through, st.headOnly)
}

// headOnly is the decoder of heads.
func (st *Store) headOnly(_ context.Context, run messages.Ref, m bus.Message) (record.Entry, error) {
	return st.decodeHead(run, m)
}

// decoder reads a message of a log.
type decoder func(ctx context.Context, run messages.Ref, m bus.Message) (record.Entry, error)

func (st *Store) read(ctx context.Context, run messages.Ref, after, through uint64, decode decoder) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		if err := run.Check(); err != nil {
			yield(record.Entry{}, err)
			return
		}
		if ctx.Err() != nil {
			yield(record.Entry{}, context.Cause(ctx))
			return
		}
		r := reading{store: st, decode: decode, run: run, at: after, is: after == 0}
		if r.quick(ctx, yield) && r.at < through {
			r.slow(ctx, through, yield)
		}
	}
}

// reading is a read on its way.
type reading struct {
	store  *Store
	decode decoder
	run    messages.Ref
	at     uint64 // the entry that was yielded last
	is     bool   // whether at is an entry of the log or its begin; else it is just a number below the rest
	head   record.Head
}

// quick yields what a replica has. It is false when the caller has had enough, or an error.
func (r *reading) quick(ctx context.Context, yield func(record.Entry, error) bool) bool {
	for m, err := range r.store.bus.Partitions(bus.StreamRuns).Of(r.run).Scan(ctx, r.run.LogSubject(), r.at+1) {
		if err != nil {
			return true // the leader will do
		}
		if r.misses(m) {
			return true
		}
		if !r.yield(ctx, m, yield) {
			return false
		}
	}
	return true
}

// slow yields what the leader has, up to through.
func (r *reading) slow(ctx context.Context, through uint64, yield func(record.Entry, error) bool) {
	for r.at < through {
		m, ok, err := r.store.bus.Partitions(bus.StreamRuns).Of(r.run).Get(ctx, bus.Lookup{Seq: r.at + 1, Next: r.run.LogSubject()})
		switch {
		case err != nil:
			yield(record.Entry{}, fmt.Errorf("read %s after %d: %w", r.run, r.at, err))
			return
		case !ok:
			return
		case r.misses(m):
			yield(record.Entry{}, fmt.Errorf("read %s: entries between %d and %d are missing", r.run, r.at, m.Seq))
			return
		case !r.yield(ctx, m, yield):
			return
		}
	}
}

// misses reports whether there was an entry between the last one and this.
func (r *reading) misses(m bus.Message) bool {
	after, err := m.Follows()
	return err == nil && r.is && after != r.at
}

func (r *reading) yield(ctx context.Context, m bus.Message, yield func(record.Entry, error) bool) bool {
	e, err := r.entry(ctx, m)
	r.at, r.is, r.head = m.Seq, true, e.Head
	return yield(e, err) && err == nil
}

func (r *reading) entry(ctx context.Context, m bus.Message) (record.Entry, error) {
	head, yes := r.store.unsigned(r.run, m)
	if !yes {
		return r.decode(ctx, r.run, m)
	}
	var prev *record.Head
	if r.is {
		prev = &r.head
	}
	return r.store.disregard(ctx, r.run, m, head, prev, r.decode)
}

// Last implements runlog.Log; the stream's leader answers.
func (st *Store) Last(ctx context.Context, run messages.Ref) (record.Entry, bool, error) {
	return st.last(ctx, run, bus.Stream.Get, st.headOnly)
}

// End implements runlog.Log. It is one request, unless the end was heard and the replica that answers does not have it yet: then the leader is
// asked too.
func (st *Store) End(ctx context.Context, run messages.Ref, heard bool) (record.Entry, bool, error) {
	if heard {
		e, ok, err := st.last(ctx, run, bus.Stream.Near, st.endOnly)
		if err == nil && ok && e.Head.Phase == record.PhaseFinished {
			return e, true, nil
		}
	}
	return st.last(ctx, run, bus.Stream.Get, st.endOnly)
}

// endOnly is the decoder of an end; of any other entry it reads the head.
func (st *Store) endOnly(ctx context.Context, run messages.Ref, m bus.Message) (record.Entry, error) {
	e, err := st.decodeHead(run, m)
	if err != nil || e.Head.Phase != record.PhaseFinished {
		return e, err
	}
	return st.decodeRecords(ctx, run, m, e)
}

// lookup asks a stream for one message.
type lookup func(bus.Stream, context.Context, bus.Lookup) (bus.Message, bool, error)

func (st *Store) last(ctx context.Context, run messages.Ref, get lookup, decode decoder) (record.Entry, bool, error) {
	if err := run.Check(); err != nil {
		return record.Entry{}, false, err
	}
	m, ok, err := get(st.bus.Partitions(bus.StreamRuns).Of(run), ctx, bus.Lookup{Last: run.LogSubject()})
	if err != nil {
		return record.Entry{}, false, fmt.Errorf("read last entry of %s: %w", run, err)
	}
	if !ok {
		return record.Entry{}, false, nil
	}
	var e record.Entry
	if head, yes := st.unsigned(run, m); yes {
		e, err = st.disregard(ctx, run, m, head, nil, decode)
	} else {
		e, err = decode(ctx, run, m)
	}
	return e, true, err
}
