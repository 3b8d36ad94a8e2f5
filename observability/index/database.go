package index

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
	kindSQLite   = "sqlite"
	kindPostgres = "postgres"
)

const (
	maxReaders   = 4               // connections that answer queries
	maxWriters   = 2               // of SQLite: one applies, another may begin anew; they wait for each other
	idleReaders  = 5 * time.Minute // before one is closed
	busyTimeout  = 5 * time.Second // for the file of another process
	queryTimeout = 8 * time.Second // below what a request may take
	// PostgreSQL's lock of who applies, and of who makes the tables: "longshor" and "longshos" in ASCII.
	lockApply  = 0x6c6f6e6773686f72
	lockTables = 0x6c6f6e6773686f73
)

// database is a SQLite file or a PostgreSQL. A question mark in a statement is a parameter.
type database struct {
	kind   string
	writes *sql.DB
	reads  *sql.DB
}

// isURL reports whether the place of an index is a PostgreSQL.
func isURL(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}

// openDatabase does not connect yet. What it says of a URL has no password.
func openDatabase(where string) (*database, error) {
	if isURL(where) {
		cfg, err := pgx.ParseConfig(where)
		if err != nil {
			return nil, fmt.Errorf("read the URL of the index: %w", hide(err, where))
		}
		if cfg.ConnectTimeout == 0 {
			cfg.ConnectTimeout = busyTimeout
		}
		db := stdlib.OpenDB(*cfg)
		db.SetMaxOpenConns(maxReaders + 1) // one applies
		db.SetConnMaxIdleTime(idleReaders)
		return &database{kindPostgres, db, db}, nil
	}
	if err := os.MkdirAll(filepath.Dir(where), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the index: %w", err)
	}
	// Create the file with these permissions, so that other users cannot read the inputs of runs. In a shared folder, an existing
	// file may belong to another user.
	f, err := os.OpenFile(where, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the index: %w", err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return nil, fmt.Errorf("open the index: %w", err)
	}
	pragmas := url.Values{"_pragma": {
		"busy_timeout(" + strconv.FormatInt(busyTimeout.Milliseconds(), 10) + ")", "journal_mode(WAL)", "synchronous(NORMAL)", "cache_size(-16000)",
	}}
	open := func(extra string, most int) *sql.DB {
		u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: where}).EscapedPath(), RawQuery: pragmas.Encode() + extra}
		db := sql.OpenDB(&connector{&sqlite.Driver{}, u.String()})
		db.SetMaxOpenConns(most)
		return db
	}
	return &database{kindSQLite, open("&_txlock=immediate", maxWriters), open("", maxReaders)}, nil
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

func (d *database) close() error {
	if d.reads == d.writes {
		return d.writes.Close()
	}
	return errors.Join(d.reads.Close(), d.writes.Close())
}

// sql is a statement in the dialect of the database.
func (d *database) sql(s string) string {
	if d.kind == kindSQLite {
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

// beginner is a database or a connection of one.
type beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// transaction does something as a whole or not at all.
func (d *database) transaction(ctx context.Context, on beginner, do func(*tx) error) error {
	t, err := on.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := do(&tx{t, d}); err != nil {
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

// tx is a transaction with statements of the dialect.
type tx struct {
	t *sql.Tx
	d *database
}

func (t *tx) exec(ctx context.Context, s string, args ...any) (int64, error) {
	res, err := t.t.ExecContext(ctx, t.d.sql(s), args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", verb(s), err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", verb(s), err)
	}
	return n, nil
}

// each calls scan for every row.
func (t *tx) each(ctx context.Context, scan func(row func(...any) error) error, s string, args ...any) error {
	rows, err := t.t.QueryContext(ctx, t.d.sql(s), args...)
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

// one reads one row.
func (t *tx) one(ctx context.Context, into []any, s string, args ...any) error {
	if err := t.t.QueryRowContext(ctx, t.d.sql(s), args...).Scan(into...); err != nil {
		return fmt.Errorf("%s: %w", verb(s), err)
	}
	return nil
}

// verb is what a statement does, for errors.
func verb(s string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return strings.ToLower(word)
}

// read makes queries that see one state of the database, within their time.
func (d *database) read(ctx context.Context, do func(context.Context, *tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	t, err := d.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: d.snapshot()})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return errors.Join(do(ctx, &tx{t, d}), ignoreDone(t.Rollback()))
}

func (d *database) snapshot() sql.IsolationLevel {
	if d.kind == kindPostgres {
		return sql.LevelRepeatableRead
	}
	return sql.LevelDefault // SQLite's transactions are serial
}
