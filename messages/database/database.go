// Package database opens the databases that parts of Longshore keep tables in: a SQLite file of one process or a PostgreSQL that many
// share, with one way to say things to both. [Open] does not connect yet; [DB.Transaction] and [DB.Read] do things as a whole.
//
// A SQLite file can be read by its owner alone, keeps a write-ahead log, and waits for the file of another process for 5 s.
// No error holds a password of a URL. It knows no table: those are the caller's.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
)

// Kinds of databases.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

const (
	maxReaders   = 4               // connections that answer queries
	idleReaders  = 5 * time.Minute // before one is closed
	busyTimeout  = 5 * time.Second // for the file of another process
	queryTimeout = 8 * time.Second // below what a request may take
)

// Config is fixed for the life of a DB.
type Config struct {
	Where   string        // a postgres:// URL, or the path of a SQLite file; its folder is made
	What    string        // what is kept there, for errors: "the index"
	Writers int           // connections that write to a SQLite file; they wait for each other. Default 1
	Busy    time.Duration // how long a SQLite file of another process is waited for, and a connection to PostgreSQL. Default 5 s
	Query   time.Duration // bounds each Read. Default 8 s
	Erase   bool          // a SQLite file does not keep what was deleted
}

// DB is a SQLite file or a PostgreSQL. A question mark in a statement is a parameter.
type DB struct {
	Kind   string // SQLite or Postgres
	Writes *sql.DB
	Reads  *sql.DB // the same for a PostgreSQL

	query time.Duration
}

// IsURL reports whether a place is a PostgreSQL.
func IsURL(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}

// Open does not connect yet. What it says of a URL has no password.
func Open(c Config) (*DB, error) {
	if c.Busy == 0 {
		c.Busy = busyTimeout
	}
	if c.Query == 0 {
		c.Query = queryTimeout
	}
	if IsURL(c.Where) {
		return openPostgres(c)
	}
	if err := os.MkdirAll(filepath.Dir(c.Where), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", c.What, err)
	}
	// Create the file with these permissions, so that other users cannot read the inputs of runs. In a shared folder, an existing
	// file may belong to another user.
	f, err := os.OpenFile(c.Where, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", c.What, err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return nil, fmt.Errorf("open %s: %w", c.What, err)
	}
	pragmas := url.Values{"_pragma": {
		"busy_timeout(" + strconv.FormatInt(c.Busy.Milliseconds(), 10) + ")", "journal_mode(WAL)", "synchronous(NORMAL)", "cache_size(-16000)",
	}}
	if c.Erase {
		pragmas.Add("_pragma", "secure_delete(ON)")
	}
	open := func(extra string, most int) *sql.DB {
		u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: c.Where}).EscapedPath(), RawQuery: pragmas.Encode() + extra}
		db := sql.OpenDB(&connector{&sqlite.Driver{}, u.String()})
		db.SetMaxOpenConns(most)
		return db
	}
	// Statements of many rows keep what they change until their end, in memory and not in a file of the folder for temporary files.
	return &DB{Kind: SQLite, query: c.Query, Writes: open("&_txlock=immediate&_pragma=temp_store(MEMORY)", max(c.Writers, 1)), Reads: open("", maxReaders)}, nil
}

func openPostgres(c Config) (*DB, error) {
	cfg, err := pgx.ParseConfig(c.Where)
	if err != nil {
		return nil, fmt.Errorf("read the URL of %s: %w", c.What, hide(err, c.Where))
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = c.Busy
	}
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(maxReaders + 1) // one applies
	db.SetConnMaxIdleTime(idleReaders)
	return &DB{Postgres, db, db, c.Query}, nil
}

// hide takes a URL with its password out of an error.
func hide(err error, where string) error {
	text := err.Error()
	if u, parsed := url.Parse(where); parsed == nil {
		password, _ := u.User.Password()
		for _, secret := range []string{password, u.Query().Get("password")} {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, "xxxxx")
			}
		}
		return errors.New(text)
	}
	return errors.New("it cannot be parsed")
}

// Close ends the connections.
func (d *DB) Close() error {
	if d.Reads == d.Writes {
		return d.Writes.Close()
	}
	return errors.Join(d.Reads.Close(), d.Writes.Close())
}

// SQL is a statement in the dialect of the database.
func (d *DB) SQL(s string) string {
	if d.Kind == SQLite {
		return s
	}
	s = strings.ReplaceAll(s, "instr(", "strpos(")
	var b strings.Builder
	n := 0
	for i := range len(s) {
		if s[i] != '?' {
			b.WriteByte(s[i])
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// Beginner is a database or a connection of one.
type Beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// Transaction does something as a whole or not at all.
func (d *DB) Transaction(ctx context.Context, on Beginner, do func(*Tx) error) error {
	t, err := on.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := do(&Tx{t, d}); err != nil {
		return errors.Join(err, ignoreDone(t.Rollback()))
	}
	if err := t.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// Tx is a transaction with statements of the dialect.
type Tx struct {
	t *sql.Tx
	d *DB
}

// Kind is that of the database.
func (t *Tx) Kind() string { return t.d.Kind }

// Exec runs a statement and returns how many rows it changed.
func (t *Tx) Exec(ctx context.Context, s string, args ...any) (int64, error) {
	res, err := t.t.ExecContext(ctx, t.d.SQL(s), args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", verb(s), err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", verb(s), err)
	}
	return n, nil
}

// Each calls scan for every row.
func (t *Tx) Each(ctx context.Context, scan func(row func(...any) error) error, s string, args ...any) error {
	rows, err := t.t.QueryContext(ctx, t.d.SQL(s), args...)
	if err != nil {
		return fmt.Errorf("%s: %w", verb(s), err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows.Scan); err != nil {
			return fmt.Errorf("%s: %w", verb(s), err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", verb(s), err)
	}
	return nil
}

// Has reports whether there is a table.
func (t *Tx) Has(ctx context.Context, table string) (bool, error) {
	q := "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
	if t.d.Kind == Postgres {
		q = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = ?"
	}
	var n int
	err := t.One(ctx, []any{&n}, q, table)
	return n > 0, err
}

// One reads one row.
func (t *Tx) One(ctx context.Context, into []any, s string, args ...any) error {
	if err := t.t.QueryRowContext(ctx, t.d.SQL(s), args...).Scan(into...); err != nil {
		return fmt.Errorf("%s: %w", verb(s), err)
	}
	return nil
}

// verb is what a statement does, for errors.
func verb(s string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return strings.ToLower(word)
}

// Read makes queries that see one state of the database, within their time.
func (d *DB) Read(ctx context.Context, do func(context.Context, *Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, d.query)
	defer cancel()
	t, err := d.Reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: d.snapshot()})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return errors.Join(do(ctx, &Tx{t, d}), ignoreDone(t.Rollback()))
}

func (d *DB) snapshot() sql.IsolationLevel {
	if d.Kind == Postgres {
		return sql.LevelRepeatableRead
	}
	return sql.LevelDefault // SQLite's transactions are serial
}
