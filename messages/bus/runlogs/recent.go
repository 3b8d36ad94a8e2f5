package runlogs

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
)

// Limits of Recent, over all runs: some thousand that have not ended.
const (
	maxRecent     = 64 << 20 // bytes
	recentMessage = 512      // bytes, beside its data and headers
)

// Recent holds what is appended to the logs of runs until they end, for one who reads the log of each run then: it comes by itself, while a read asks
// for it entry by entry. It promises nothing: what was appended before it began, or was forgotten because it is too much, is to be read. Safe for
// concurrent use.
type Recent struct {
	store *Store

	mu    sync.Mutex
	logs  map[messages.Ref][]bus.Message
	bytes int
}

// Recent returns one that holds nothing until it runs.
func (st *Store) Recent() *Recent {
	return &Recent{store: st, logs: map[messages.Ref][]bus.Message{}}
}

// Run follows the logs of all runs from now on until ctx ends, which is no error.
func (r *Recent) Run(ctx context.Context) error {
	group, inner := errgroup.WithContext(ctx)
	for _, stream := range r.store.bus.Partitions(bus.StreamRuns).Names() {
		group.Go(func() error {
			t := &bus.Tail{Bus: r.store.bus, Stream: stream, Filter: everyLog, Room: bus.FollowRoom}
			t.Start.DeliverPolicy = jetstream.DeliverNewPolicy
			defer t.Close()
			for {
				m, err := t.Next(inner, time.Time{})
				if err != nil {
					return fmt.Errorf("follow %s: %w", stream, err)
				}
				r.add(m.Message)
			}
		})
	}
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

func (r *Recent) add(m bus.Message) {
	run, ok := runOfLog(m.Subject)
	if !ok {
		return
	}
	size := sizeOf(m)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes+size > maxRecent {
		clear(r.logs)
		r.bytes = 0
	}
	r.logs[run] = append(r.logs[run], m)
	r.bytes += size
}

func sizeOf(m bus.Message) int {
	n := recentMessage + len(m.Data)
	for _, values := range m.Header {
		for _, v := range values {
			n += len(v)
		}
	}
	return n
}

// Holds reports whether something of a log is held.
func (r *Recent) Holds(run messages.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.logs[run]) > 0
}

// Take returns the log of a run that has ended, and forgets it. Ok is false, and nothing forgotten, unless what is held ends with the run.
// Whether it begins with the log shows when it is read: an entry that misses those before it is an error.
func (r *Recent) Take(ctx context.Context, run messages.Ref) (log iter.Seq2[record.Entry, error], ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.logs[run]
	if len(held) == 0 {
		return nil, false
	}
	head, err := record.DecodeHead(held[len(held)-1].Header.Get(headerHead))
	if err != nil || head.Phase != record.PhaseFinished {
		return nil, false
	}
	delete(r.logs, run)
	for _, m := range held {
		r.bytes -= sizeOf(m)
	}
	return func(yield func(record.Entry, error) bool) {
		read := reading{store: r.store, decode: r.store.decodeEntry, run: run, is: true}
		for _, m := range held {
			if read.misses(m) {
				yield(record.Entry{}, fmt.Errorf("read %s: the entries before %d are not held", run, m.Seq))
				return
			}
			if !read.yield(ctx, m, yield) {
				return
			}
		}
	}, true
}
