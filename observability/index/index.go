package index

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/database"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is fixed for the life of an Index.
type Config struct {
	Bus    *bus.Bus
	Where  string        // a postgres:// URL, or the path of a SQLite file; its folder is made
	Retain time.Duration // how long the rows of a run are kept after its end; default 90 days
	Log    *slog.Logger  // default: discard
}

const (
	defaultRetain = 90 * 24 * time.Hour
	maxBatch      = 10_000           // events of a transaction
	maxBatchBytes = 8 << 20          // of their data
	applyTimeout  = 30 * time.Second // of a transaction
	lookEvery     = time.Second      // at what others apply
	retainEvery   = time.Minute
	retainBatch   = 200 // runs that are removed at once
	firstPause    = 200 * time.Millisecond
	longestPause  = 30 * time.Second
)

// After a transaction, what comes for so long shares the next: the events of a run that come within it are one write of its row. Answers do
// not wait for that where this process applies. For those of other processes on a PostgreSQL it is short.
const (
	gatherFor       = 250 * time.Millisecond
	gatherForOthers = 50 * time.Millisecond
)

// Index is a database of runs. Run keeps it; any number of goroutines may ask it meanwhile.
type Index struct {
	cfg  Config
	from *events.Store
	db   *projection

	clearAtOnce int64 // runs; tests set fewer

	ready    atomic.Bool                     // the tables are there
	leads    atomic.Bool                     // this one applies
	position atomic.Pointer[events.Position] // applied, as far as is known here
	last     atomic.Uint64                   // stored, as far as is known here: the sum of the position

	mu     sync.Mutex
	err    error           // why nothing is applied, while that lasts
	again  func()          // has the feed begin anew; nil: there is none
	wanted events.Position // that answers here have waited for
}

// New returns the index of a place. A file is made; a PostgreSQL is only asked once Run runs, which waits for it.
func New(cfg Config) (*Index, error) {
	if cfg.Retain == 0 {
		cfg.Retain = defaultRetain
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	db, err := openDatabase(cfg.Where)
	if err != nil {
		return nil, err
	}
	x := &Index{cfg: cfg, from: events.New(cfg.Bus), db: db, clearAtOnce: clearAtOnce}
	x.position.Store(&events.Position{})
	return x, nil
}

// Close ends the connections. Call it when Run has returned.
func (x *Index) Close() error { return x.db.Close() }

// Behind is how many events are stored and not in the index, as of a second ago.
func (x *Index) Behind() uint64 {
	last, position := x.last.Load(), x.position.Load().Sum()
	return last - min(position, last)
}

// Failing reports whether nothing is applied, for a reason that the log tells.
func (x *Index) Failing() bool { return x.failure() != nil }

func (x *Index) failure() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// Run applies events until ctx ends; then it returns nil. While the database or NATS fails it tries again, ever later.
func (x *Index) Run(ctx context.Context) error {
	pause := firstPause
	for ctx.Err() == nil {
		before := x.position.Load().Sum()
		err := x.keep(ctx)
		x.leads.Store(false)
		if ctx.Err() != nil {
			break
		}
		if x.position.Load().Sum() != before {
			pause = firstPause
		}
		if err != nil && !errors.Is(err, errMoved) {
			x.fail(err)
			x.cfg.Log.WarnContext(ctx, "the run index is not kept", "err", err)
		}
		wait(ctx, pause)
		pause = min(2*pause, longestPause)
	}
	return nil //nolint:nilerr // it was logged, and ctx has ended
}

func (x *Index) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.err = err
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// keep makes the tables, waits until it is this one's turn to apply, and applies.
func (x *Index) keep(ctx context.Context) error {
	again, err := x.db.prepare(ctx)
	if err != nil {
		x.ready.Store(false)
		return err
	}
	if again {
		x.cfg.Log.InfoContext(ctx, "the run index is of an older version: it is made again from the events")
	}
	x.ready.Store(true)
	conn, err := x.lead(ctx)
	if err != nil {
		return err
	}
	defer discard(conn)
	x.leads.Store(true)
	h, err := x.settle(ctx, conn)
	for err == nil {
		x.fail(nil)
		if err = x.feed(ctx, conn, h); !errors.Is(err, errRebuild) {
			break
		}
		h, err = x.settle(ctx, conn)
	}
	if errors.Is(err, bus.ErrAhead) {
		x.cfg.Log.WarnContext(ctx, "the run index is ahead of the events: it is made again from them", "err", err)
		return x.db.begin(ctx, conn, h, head{epoch: h.epoch + 1, stream: h.stream}, 0)
	}
	return err
}

// lead returns the connection to apply on, once no other process applies. SQLite has no such lock: should two processes
// share a file, the position tells each what the other has done.
func (x *Index) lead(ctx context.Context) (*sql.Conn, error) {
	conn, err := x.db.Writes.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the index: %w", err)
	}
	for x.db.Kind == database.Postgres {
		var mine bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", int64(lockApply)).Scan(&mine); err != nil {
			return nil, errors.Join(fmt.Errorf("lock the index: %w", err), conn.Close())
		}
		if mine {
			break
		}
		x.fail(nil)
		if err := x.look(ctx); err != nil {
			discard(conn)
			return nil, err
		}
		wait(ctx, lookEvery)
		if ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), conn.Close())
		}
	}
	return conn, nil
}

// discard ends a connection, and with it the lock that it may have: the pool would keep both.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}

// look finds out how far the index and the stream are.
func (x *Index) look(ctx context.Context) error {
	state, err := x.from.State(ctx)
	if err != nil {
		return err
	}
	return x.db.read(ctx, func(ctx context.Context, t *tx) error {
		h, err := t.head(ctx)
		if err == nil {
			x.last.Store(state.Last.Sum())
			x.reached(h)
		}
		return err
	})
}

// reached notes where the index is.
func (x *Index) reached(h head) {
	at := h.at()
	x.position.Store(&at)
}

// settle returns where to continue. Rows of another stream are given up.
func (x *Index) settle(ctx context.Context, on database.Beginner) (head, error) {
	state, err := x.from.State(ctx)
	if err != nil {
		return head{}, err
	}
	var h head
	err = x.db.read(ctx, func(ctx context.Context, t *tx) (err error) {
		h, err = t.head(ctx)
		return err
	})
	if err != nil {
		return head{}, err
	}
	x.last.Store(state.Last.Sum())
	is := state.Of
	if h.stream != is {
		if h.stream != "" {
			x.cfg.Log.WarnContext(ctx, "the run index is of another stream: it is made again from the events")
		}
		to := head{epoch: h.epoch + 1, stream: is}
		if err := x.db.begin(ctx, on, h, to, 0); err != nil {
			return head{}, err
		}
		h = to
	}
	for i, first := range state.First {
		if at := h.at().At(i); at > 0 && at+1 < first {
			x.cfg.Log.WarnContext(ctx, "events were removed before the run index had them", "position", h.position, "first", state.First.String())
			break
		}
	}
	x.reached(h)
	return h, x.clear(ctx, on, h, &state)
}

// feed applies the events after a head until ctx ends or something fails. Events that come one after the other share transactions:
// one for each costs several times as much. Where the feed continues is stored with the rows, in the same transaction.
func (x *Index) feed(ctx context.Context, conn *sql.Conn, h head) error {
	var found []placed
	at := h.at()
	retain := time.Now()
	// What was erased may be in the log of the file still, also that of the process before.
	unforgotten := true
	texts := changedTexts{all: true, by: map[string]int{}}
	reading, end := context.WithCancelCause(ctx)
	defer end(nil)
	x.onRebuild(func() { end(errRebuild) })
	defer x.onRebuild(nil)
	for batch, err := range x.from.Gathered(reading, at, x.gather()) {
		if err != nil {
			return err
		}
		to := h
		if len(batch) == 0 {
			if at, err = x.idle(ctx, conn, h); err != nil {
				return err
			}
		}
		found = found[:0]
		at = at.Max(make(events.Position, x.from.Streams()))
		for i := range batch {
			f := &batch[i]
			for e := range f.Events() {
				found = append(found, newPlaced(e, x.placeOf(f)))
			}
			at[f.Stream], to.asOf = f.Seq, f.Time.UnixMicro()
			x.last.Store(f.Position + f.Pending)
		}
		if to.moveTo(at); to != h {
			done, err := x.applyWithin(ctx, conn, h, to, found)
			if err != nil {
				return err
			}
			unforgotten = unforgotten || done.erased
			texts.add(done.texts)
			texts.all = texts.all || done.erased // blocks of theirs are gone
			h = to
			x.reached(h)
		}
		clear(found)
		if err := x.gatherTexts(ctx, conn, h, &texts); err != nil {
			return err
		}
		if unforgotten {
			unforgotten = !x.db.forget(ctx, conn)
		}
		if time.Since(retain) > retainEvery {
			retain = time.Now()
			if err := x.retain(ctx, conn); err != nil {
				return err
			}
		}
	}
	return nil
}

// onRebuild sets what Rebuild calls once the index has moved. Otherwise that is noticed when nothing has come for a while.
func (x *Index) onRebuild(again func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.again = again
}

func (x *Index) gather() events.Gather {
	g := events.Gather{Within: gatherFor, Messages: maxBatch, Bytes: maxBatchBytes, Wanted: func() events.Position {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.wanted
	}}
	if x.db.Kind == database.Postgres {
		g.Within = gatherForOthers
	}
	return g
}

// want has what is stored up to a position applied soon.
func (x *Index) want(position events.Position) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.wanted.Reaches(position) {
		x.wanted = x.wanted.Max(position)
	}
}

func (x *Index) applyWithin(ctx context.Context, conn *sql.Conn, from, to head, events []placed) (applied, error) {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	return x.db.apply(ctx, conn, from, to, events)
}

// idle makes sure that the index still is where this one thinks, as nothing comes that would be applied. It returns where
// to continue: where all events that a stream had after that were removed, that is its end.
func (x *Index) idle(ctx context.Context, conn *sql.Conn, h head) (events.Position, error) {
	at := h.at()
	err := x.db.transaction(ctx, conn, func(t *tx) error {
		is, err := t.head(ctx)
		if err == nil && is != h {
			err = errMoved
		}
		return err
	})
	if err != nil {
		return at, err
	}
	state, err := x.from.State(ctx)
	if err != nil {
		return at, err
	}
	x.last.Store(state.Last.Sum())
	return x.from.Beyond(ctx, at, &state)
}

// begin goes to another head, and gives up the rows of runs whose first event is at a position or after it: they are removed before
// anything is applied.
func (d *projection) begin(ctx context.Context, on database.Beginner, from, to head, first uint64) error {
	return d.transaction(ctx, on, func(t *tx) error {
		if err := t.move(ctx, from, to); err != nil {
			return err
		}
		_, err := t.Exec(ctx, "UPDATE longshore_kept SET clearing = ? WHERE one = 1", place(first))
		return err
	})
}

// runColumn is the column of a table that names the run.
func runColumn(table string) string {
	if table == "longshore_runs" {
		return "id"
	}
	return "run"
}

// retain removes rows of runs that ended long ago, a few at a time.
func (x *Index) retain(ctx context.Context, on database.Beginner) error {
	before := time.Now().Add(-x.cfg.Retain).UnixMicro()
	for removed := retainBatch; removed == retainBatch && ctx.Err() == nil; {
		err := x.db.transaction(ctx, on, func(t *tx) (err error) {
			removed, err = t.removeEnded(ctx, before)
			return err
		})
		if err != nil {
			return fmt.Errorf("remove old runs from the index: %w", err)
		}
	}
	for more := true; more && ctx.Err() == nil; {
		err := x.db.transaction(ctx, on, func(t *tx) (err error) {
			more, err = t.dissolveOld(ctx, before)
			return err
		})
		if err != nil {
			return fmt.Errorf("remove old runs from the search of the index: %w", err)
		}
	}
	return nil
}

// removeEnded removes some of the runs that ended before a time, and returns how many.
func (t *tx) removeEnded(ctx context.Context, before int64) (int, error) {
	if err := t.hold(ctx); err != nil {
		return 0, err
	}
	var runs []messages.Ref
	err := t.Each(ctx, func(scan func(...any) error) error {
		var r messages.Ref
		err := scan(&r.Tenant, &r.Run)
		runs = append(runs, r)
		return err
	}, "SELECT tenant, id FROM longshore_runs WHERE finished_at < ? ORDER BY finished_at, tenant, id LIMIT ?", before, retainBatch)
	if err != nil {
		return 0, err
	}
	sums := newSumChanges()
	if err := t.remove(ctx, runs, sums); err != nil {
		return 0, err
	}
	return len(runs), t.saveSums(ctx, sums)
}

// Rebuild deletes the rows that can be derived from EVENTS again, so that the process that applies events applies them anew. Runs
// whose first events were removed from EVENTS keep their rows.
func (x *Index) Rebuild(ctx context.Context) error {
	if _, err := x.db.prepare(ctx); err != nil {
		return err
	}
	for {
		state, err := x.from.State(ctx)
		if err != nil {
			return err
		}
		var h head
		if err := x.db.read(ctx, func(ctx context.Context, t *tx) (err error) { h, err = t.head(ctx); return err }); err != nil {
			return err
		}
		err = x.db.begin(ctx, x.db.Writes, h, head{epoch: h.epoch + 1, stream: h.stream}, x.firstPlace(&state))
		if !errors.Is(err, errMoved) {
			x.mu.Lock()
			again := x.again
			x.mu.Unlock()
			if err == nil && again != nil {
				again()
			}
			return err
		}
		wait(ctx, 10*time.Millisecond)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// Status tells how the index is.
func (x *Index) Status(ctx context.Context) (control.IndexStatus, error) {
	s := control.IndexStatus{Kind: x.db.Kind, Leads: x.leads.Load()}
	if err := x.failure(); err != nil {
		s.Error = strict.Clip(err.Error(), 512)
	}
	state, err := x.from.State(ctx)
	if err != nil {
		return s, err
	}
	s.Last = state.Last.Sum()
	x.want(state.Last)
	if !x.ready.Load() {
		s.Behind = s.Last
		return s, nil
	}
	err = x.db.read(ctx, func(ctx context.Context, t *tx) error {
		h, err := t.head(ctx)
		if err != nil {
			return err
		}
		s.Position, s.AsOf = h.position, time.UnixMicro(h.asOf).UTC()
		s.Behind = h.at().Behind(state.Last)
		if h.position == 0 {
			s.AsOf = time.Time{}
		}
		return t.One(ctx, []any{&s.Runs, &s.Steps}, "SELECT runs, steps FROM longshore_kept")
	})
	return s, err
}
