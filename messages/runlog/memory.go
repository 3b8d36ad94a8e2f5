package runlog

import (
	"context"
	"iter"
	"slices"
	"sort"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Memory is a Log in memory: for tests, simulations and programs that embed an agent. The zero value is empty.
type Memory struct {
	// Stale, if set, says how many of the newest entries a read that asks for no more than through leaves out.
	// It stands for a replica that lags.
	Stale func(run messages.Ref) int

	mu   sync.Mutex
	seq  uint64
	runs map[messages.Ref][]record.Entry
}

var _ Log = (*Memory)(nil)

// Append implements Log.
func (l *Memory) Append(_ context.Context, run messages.Ref, last uint64, e record.Entry) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := l.runs[run]
	if at := end(entries); at != last {
		for _, old := range entries {
			if old.Seq > last && old.Head.ID == e.Head.ID {
				return old.Seq, nil
			}
		}
		return 0, ErrConflict
	}
	if l.runs == nil {
		l.runs = map[messages.Ref][]record.Entry{}
	}
	l.seq++
	l.runs[run] = append(entries, e.At(l.seq))
	return l.seq, nil
}

// Read implements Log.
func (l *Memory) Read(_ context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error] {
	l.mu.Lock()
	entries := l.runs[run]
	l.mu.Unlock()
	if l.Stale != nil && through != Tail {
		n := max(0, len(entries)-l.Stale(run))
		for n < len(entries) && entries[n].Seq <= through {
			n++
		}
		entries = entries[:n]
	}
	return func(yield func(record.Entry, error) bool) {
		at := sort.Search(len(entries), func(i int) bool { return entries[i].Seq > after })
		for _, e := range entries[at:] {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Heads implements Log.
func (l *Memory) Heads(ctx context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for e, err := range l.Read(ctx, run, after, through) {
			if e.Records = nil; !yield(e, err) {
				return
			}
		}
	}
}

// Last implements Log.
func (l *Memory) Last(_ context.Context, run messages.Ref) (record.Entry, bool, error) {
	last, ok := l.last(run)
	last.Records = nil
	return last, ok, nil
}

// End implements Log.
func (l *Memory) End(_ context.Context, run messages.Ref, _ bool) (record.Entry, bool, error) {
	last, ok := l.last(run)
	if last.Head.Phase != record.PhaseFinished {
		last.Records = nil
	}
	return last, ok, nil
}

func (l *Memory) last(run messages.Ref) (record.Entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := l.runs[run]
	if len(entries) == 0 {
		return record.Entry{}, false
	}
	return entries[len(entries)-1], true
}

// Entries are all entries of a run.
func (l *Memory) Entries(run messages.Ref) []record.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.runs[run])
}

// Runs are all runs that have a log.
func (l *Memory) Runs() []messages.Ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := make([]messages.Ref, 0, len(l.runs))
	for r := range l.runs {
		runs = append(runs, r)
	}
	return runs
}

func end(entries []record.Entry) uint64 {
	if len(entries) == 0 {
		return 0
	}
	return entries[len(entries)-1].Seq
}
