package runlog

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// ErrConflict means that the log does not end where the append expected; nothing was written.
var ErrConflict = errors.New("the log has grown")

// Tail asks for all entries, as the through of a Read. Such a read is never answered by a replica that may lag.
const Tail = math.MaxUint64

// Log stores the logs of runs. Safe for concurrent use.
type Log interface {
	// Append adds an entry if last is still the run's last sequence (0: no log), and returns the entry's sequence.
	// The entry's Head.ID decides an ambiguous outcome: an append that was stored although its answer was lost is a
	// success. ErrConflict: the log ends elsewhere and this entry is not in it. Any other error: the entry may be
	// stored or not.
	Append(ctx context.Context, run messages.Ref, last uint64, e record.Entry) (uint64, error)
	// Read yields the entries after a sequence, oldest first. It reaches at least through, if the log does; what
	// lies beyond may be missing, for reads are answered by replicas that lag. With Tail nothing is missing.
	Read(ctx context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error]
	// Heads is Read without the records: nothing of an entry is opened.
	Heads(ctx context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error]
	// Last is the newest entry without its records, never a stale one; ok is false for a run without a log.
	Last(ctx context.Context, run messages.Ref) (e record.Entry, ok bool, err error)
	// End is Last, and has the records of an entry that ends its run. Heard means that the run was heard to have ended: then any
	// replica that has the end may answer, for nothing follows it that counts.
	End(ctx context.Context, run messages.Ref, heard bool) (e record.Entry, ok bool, err error)
}

// Queue is the stream of task messages.
type Queue interface {
	// Wake publishes the wake-up ticket named by the sequence of a log entry. At least once; the same name within
	// the stream's window is stored once.
	Wake(ctx context.Context, run messages.Ref, after uint64) error
	// Timer schedules the errand that ends a park. The timer of a park exists once.
	Timer(ctx context.Context, run messages.Ref, park uint64, at time.Time) error
	// Net schedules the errand that catches a lost wake-up of a control record.
	Net(ctx context.Context, run messages.Ref, control string, at time.Time) error
	// Holds reports whether the task message of a sequence is still in the queue; never stale.
	Holds(ctx context.Context, run messages.Ref, ticket uint64) (bool, error)
	// DeadLetter publishes a task to the dead letters; one letter per run.
	DeadLetter(ctx context.Context, run messages.Ref, agent string, d messages.Dead) error
}

// Events is the stream of public events.
type Events interface {
	// Open begins to publish for a run. The outbox belongs to one goroutine.
	Open(run messages.Ref) Outbox
	// Ended reports whether run_finished of the run is stored; never stale.
	Ended(ctx context.Context, run messages.Ref) (bool, error)
}

// Outbox publishes one run's events in log order.
type Outbox interface {
	// Publish sends the events of the entry with a sequence, soon: it ranges over them once, and maybe later. It does not
	// wait for acknowledgements; it may block on a full window. Failures show in Flush. It must not be given run_finished.
	Publish(ctx context.Context, seq uint64, events iter.Seq[messages.Event])
	// Through is the highest sequence up to which every event that was given to Publish is acknowledged; 0 at first.
	Through() uint64
	// Flush waits until all are acknowledged, publishing again what failed, within the budget of ctx.
	Flush(ctx context.Context) error
	// Finish flushes and then publishes run_finished, which is stored once per run, however often it is published.
	Finish(ctx context.Context, e messages.Event) error
}

// Ledger is an Outbox that also counts what model calls cost.
type Ledger interface {
	// Spend counts what the entry with a sequence cost, in nano US dollars. It is given before the events of the entry, and
	// acknowledged, flushed and given again with them; given again it counts once.
	Spend(ctx context.Context, seq uint64, at time.Time, nanos int64)
}
