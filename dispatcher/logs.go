package dispatcher

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/logentries"
	"github.com/longshore-run/longshore/messages/logentry"
)

// LogOptions say which log entries to read.
type LogOptions struct {
	After  uint64            // only those after this one, by its Seq
	Follow bool              // those that come too, until the run has ended
	Level  logentry.LogLevel // the lowest that is wanted. Default: all
}

// Logs yields what processes logged about a run, oldest first: the newest logentry.MaxLogEntries that are kept. It is for
// people's eyes: entries may be lost, and those of several processes come in the order in which they were stored. With
// Follow it continues until the run has ended, or ctx does, whose error then comes last; a run that does not exist yet is
// waited for. A client that is bound to a tenant gets ErrBound.
func (of Runs) Logs(ctx context.Context, run messages.Ref, o LogOptions) iter.Seq2[logentry.StoredLogEntry, error] {
	return func(yield func(logentry.StoredLogEntry, error) bool) {
		if of.client.tenant != "" {
			yield(logentry.StoredLogEntry{}, fmt.Errorf("%w: log entries, which HTTP has", ErrBound))
			return
		}
		if o.Level != "" {
			if err := o.Level.Check(); err != nil {
				yield(logentry.StoredLogEntry{}, err)
				return
			}
		}
		if of.client.remote != nil {
			of.client.remote.logs(ctx, run, o)(yield)
			return
		}
		read := logentries.Query{After: o.After, Follow: o.Follow}
		if o.Follow {
			ended := make(chan struct{})
			read.Ended = ended
			waiting, stop := context.WithCancel(ctx)
			var wait sync.WaitGroup
			defer wait.Wait()
			defer stop()
			end := sync.OnceFunc(func() { close(ended) })
			wait.Go(func() {
				if of.client.logs.AwaitEnd(waiting, run) == nil {
					end()
				}
			})
			wait.Go(func() { // its events may be gone
				if s, err := of.client.Status(waiting, run); err == nil && s.Status.Ended() {
					end()
				}
			})
		}
		for e, err := range of.client.logs.Read(ctx, run, read) {
			if err == nil && !o.Level.Covers(e.Level) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
