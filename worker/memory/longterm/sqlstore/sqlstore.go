// Package sqlstore keeps long-term memory in a SQLite file, with FTS5, or in a PostgreSQL that all workers share, with tsvector and,
// if the server has the extension, pgvector. The tables are the same; what differs is how words and vectors are looked up.
//
// [Open] does not connect: the first call makes the tables, and each further one tries again while that fails. A batch is one
// transaction. A SQLite file has one writer at a time; PostgreSQL one for each tenant, so that quotas hold.
//
// An index finds candidates, at most 1,000 of the best; their order is then that of longterm.BM25 in the process, as in every other store.
// Without pgvector vectors are compared one by one, MaxScan of them at most.
package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/longshore-run/longshore/messages/database"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// MaxScan is how many vectors a search without pgvector compares at most.
const MaxScan = 10_000

// Config is fixed for the life of a Store.
type Config struct {
	Where  string // a postgres:// URL, or the path of a SQLite file; its folder is made
	Limits longterm.Limits
	// Language is a text search configuration of PostgreSQL, such as "german", by which words are found besides those of package longterm.
	// Default: none.
	Language string
	Timeout  time.Duration    // Bounds each call. Default longterm.DefaultTimeout
	Now      func() time.Time // The clock. Default: the system's.
}

// Store is a longterm.Store in a database.
type Store struct {
	cfg   Config
	db    *database.DB
	exact int // MaxScan
	// unerased says that SQLite's log may hold what was removed, as after a crash.
	unerased atomic.Bool

	mu      sync.Mutex
	ready   bool         // the tables are there
	pgv     bool         // pgvector is there
	filters bool         // and its index continues while what it finds does not pass a filter
	indexed map[int]bool // lengths of vectors that have an index
}

var _ longterm.Store = (*Store)(nil)

// Open returns a store. The caller closes it.
func Open(cfg Config) (*Store, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = longterm.DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Language != "" {
		if err := strict.CheckToken("language", cfg.Language); err != nil {
			return nil, err
		}
	}
	// A lock of the file is waited for less long than the whole call may take: the error then says that it is locked.
	db, err := database.Open(database.Config{Where: cfg.Where, What: "long-term memory", Busy: cfg.Timeout * 4 / 5, Query: cfg.Timeout, Erase: true})
	if err != nil {
		return nil, err
	}
	st := &Store{cfg: cfg, db: db, exact: MaxScan, indexed: map[int]bool{}}
	st.unerased.Store(true)
	return st, nil
}

// Close ends the connections.
func (st *Store) Close() error { return st.db.Close() }

// Features implements longterm.Keeper. Whether a PostgreSQL has pgvector is known after the first call.
func (st *Store) Features() longterm.Features {
	st.mu.Lock()
	defer st.mu.Unlock()
	f := longterm.Features{Kind: st.db.Kind, Durable: true, Shared: st.db.Kind == database.Postgres, TextIndex: true, VectorIndex: st.pgv, Readable: true}
	if !st.pgv {
		f.MaxScan = MaxScan
	}
	return f
}

// errSlow is the cause of a call's end that its caller did not end.
var errSlow = errors.New("no answer in time")

// begin bounds a call and makes the tables if they are missing. Every error of a call goes through the function that it returns, which
// also ends the bound.
func (st *Store) begin(ctx context.Context) (bounded context.Context, end func(error) error, err error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, st.cfg.Timeout, errSlow)
	end = func(err error) error {
		defer cancel()
		return st.failure(ctx, bounded, err)
	}
	if err := st.prepare(bounded); err != nil {
		return nil, nil, end(err)
	}
	return bounded, end, nil
}

// failure says what an error of the database means to a caller.
func (st *Store) failure(ctx, bounded context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if bounded.Err() != nil {
		return fmt.Errorf("%w: %s did not answer within %v", longterm.ErrUnavailable, st.db.Kind, st.cfg.Timeout)
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_FULL:
			return fmt.Errorf("%w: %w", longterm.ErrStorageFull, err)
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return fmt.Errorf("%w: another process has locked the file: %w", longterm.ErrUnavailable, err)
		case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
			return fmt.Errorf("%w: %w", longterm.ErrUnavailable, err)
		}
		return err
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case e.Code == "53100": // disk_full
			return fmt.Errorf("%w: %w", longterm.ErrStorageFull, err)
		case e.Code[:2] == "53" || e.Code[:2] == "57" || e.Code[:2] == "08" || e.Code[:2] == "40": // resources, shutdown, connection, conflict
			return fmt.Errorf("%w: %w", longterm.ErrUnavailable, err)
		}
		return err
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return fmt.Errorf("%w: %w", longterm.ErrUnavailable, err)
	}
	if _, ok := errors.AsType[net.Error](err); ok || pgconn.SafeToRetry(err) {
		return fmt.Errorf("%w: %w", longterm.ErrUnavailable, err)
	}
	return err
}
