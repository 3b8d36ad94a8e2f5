package sql

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// sqliteFile is a database of SQLite, which is opened for each call.
type sqliteFile struct {
	reader, writer driver.Connector
	rowBytes       int
}

var _ database = (*sqliteFile)(nil)

// leastValue is how large a value may be while a statement works, at least. SQLite works in the memory of the worker, and a statement is
// not stopped in the middle of an operation on one value, some of which take time by the square of its length: instr() takes 0.3 s.
const leastValue = 256 << 10

func newSQLite(file string, d *Database) (*sqliteFile, error) {
	wrong := func(reason string) error { return &messages.FieldError{Field: "file", Reason: reason} }
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil, wrong("is not a file that can be read: SQLite databases are not created here")
	}
	s := &sqliteFile{rowBytes: d.Bytes}
	place := (&url.URL{Scheme: "file", Path: file, OmitHost: true}).String()
	common := fmt.Sprintf("?_defensive=1&_dqs=0&_busy_timeout=%d&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)", lockTime.Milliseconds())
	if s.reader, err = sqlite.NewConnector(place + common + "&mode=ro&_query_only=1"); err != nil {
		return nil, wrong("cannot be opened")
	}
	if s.writer, err = sqlite.NewConnector(place + common + "&mode=rw&_foreign_keys=1&_txlock=immediate"); err != nil {
		return nil, wrong("cannot be opened")
	}
	return s, nil
}

func (*sqliteFile) kind() string { return "SQLite" }

// open returns a connection that nothing else uses.
func (s *sqliteFile) open(ctx context.Context, how driver.Connector) (conn *stdsql.Conn, shut func(), err error) {
	db := stdsql.OpenDB(how)
	if conn, err = db.Conn(ctx); err != nil {
		_ = db.Close()
		return nil, nil, errors.Join(errAway, err)
	}
	shut = func() {
		_ = conn.Close()
		_ = db.Close() // nothing is left to be written
	}
	for limit, most := range map[int]int{
		sqlite3.SQLITE_LIMIT_ATTACHED:            0, // no other file, by ATTACH or by VACUUM INTO
		sqlite3.SQLITE_LIMIT_LENGTH:              max(leastValue, 2*s.rowBytes),
		sqlite3.SQLITE_LIMIT_SQL_LENGTH:          maxSQL,
		sqlite3.SQLITE_LIMIT_COLUMN:              maxColumns,
		sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER:     maxParams,
		sqlite3.SQLITE_LIMIT_COMPOUND_SELECT:     100,
		sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
		sqlite3.SQLITE_LIMIT_VDBE_OP:             1_000_000,
		sqlite3.SQLITE_LIMIT_WORKER_THREADS:      0,
	} {
		if _, err := sqlite.Limit(conn, limit, most); err != nil {
			shut()
			return nil, nil, errors.Join(errAway, err)
		}
	}
	return conn, shut, nil
}

// errSeveral says that a text is not one statement.
var errSeveral = errors.New("there is more than one statement")

func (s *sqliteFile) read(ctx context.Context, st statement, into *table) error {
	if !single(st.sql) {
		return errSeveral
	}
	params, err := sqliteParams(st.params)
	if err != nil {
		return err
	}
	conn, shut, err := s.open(ctx, s.reader)
	if err != nil {
		return err
	}
	defer shut()
	defer interruptAfter(ctx, conn)()
	return rowsInto(ctx, conn, st.sql, params, into, false)
}

func (s *sqliteFile) write(ctx context.Context, st statement, into *table, most int64, begin func() error) (changed int64, err error) {
	if !single(st.sql) {
		return 0, errSeveral
	}
	params, err := sqliteParams(st.params)
	if err != nil {
		return 0, err
	}
	conn, shut, err := s.open(ctx, s.writer)
	if err != nil {
		return 0, err
	}
	defer shut()
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil) // the end of ctx stops statements, but no commit
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	const total = "SELECT total_changes()"
	var before, after int64
	if err := tx.QueryRowContext(ctx, total).Scan(&before); err != nil {
		return 0, err
	}
	release := interruptAfter(ctx, conn)
	err = rowsInto(ctx, tx, st.sql, params, into, true)
	if release(); err != nil {
		return 0, err
	}
	if err := tx.QueryRowContext(ctx, "SELECT changes(), total_changes()").Scan(&changed, &after); err != nil {
		return 0, err
	}
	if after == before {
		changed = 0 // changes() is that of a statement before
	}
	if all := max(changed, after-before); all > most { // those of triggers and foreign keys too
		return 0, &excessError{all, most}
	}
	if err := begin(); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err := tx.Commit(); err != nil {
		if e, ok := errors.AsType[*sqlite.Error](err); ok {
			switch e.Code() & 0xff {
			case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_FULL:
				return 0, err // the transaction is still open, and ends with the connection
			}
		}
		return 0, &unknownError{err}
	}
	return changed, nil
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*stdsql.Rows, error)
}

// rowsInto runs one statement, to its end if it must have all its effect.
func rowsInto(ctx context.Context, on querier, sql string, params []any, into *table, whole bool) error {
	rows, err := on.QueryContext(ctx, sql, params...)
	if err != nil {
		return err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	if len(types) > 0 {
		columns := make([]column, len(types))
		for i, t := range types {
			columns[i] = column{Name: t.Name(), Type: t.DatabaseTypeName()}
		}
		into.head(columns)
	}
	values, at := make([]any, len(types)), make([]any, len(types))
	for i := range values {
		at[i] = &values[i]
	}
	for rows.Next() {
		if into.truncated {
			continue
		}
		if err := rows.Scan(at...); err != nil {
			return err
		}
		row := make([]json.RawMessage, len(values))
		for i, v := range values {
			row[i] = sqliteValue(v)
		}
		if !into.add(row) && !whole {
			return nil
		}
	}
	return rows.Err()
}

// sqliteValue is what a value is, whatever its column was declared to hold.
func sqliteValue(v any) json.RawMessage {
	switch v := v.(type) {
	case nil:
		return json.RawMessage("null")
	case int64:
		return integer(v)
	case float64:
		return float(v)
	case bool:
		return json.RawMessage(strconv.FormatBool(v))
	case string:
		return text(v)
	case []byte:
		return binary(v)
	case time.Time: // the driver reads it from text in a column that is declared so
		return text(v.Format("2006-01-02 15:04:05.999999999Z07:00"))
	default:
		return text(fmt.Sprint(v))
	}
}

// sqliteParams are parameters as SQLite takes them.
func sqliteParams(in []any) ([]any, error) {
	out := make([]any, len(in))
	for i, v := range in {
		switch v := v.(type) {
		case array:
			return nil, &paramError{i, "SQLite has no arrays: give a text such as [1,2] and read it with json_each(?)"}
		case exact:
			f, err := strconv.ParseFloat(string(v), 64)
			if err != nil || f == math.Trunc(f) && !strings.ContainsAny(string(v), ".eE") {
				return nil, &paramError{i, "is a number that SQLite does not hold exactly: give it as a text"}
			}
			out[i] = f
		case []byte:
			if out[i] = v; len(v) == 0 {
				out[i] = []byte{} // not NULL
			}
		default:
			out[i] = v
		}
	}
	return out, nil
}

// paramError says what is wrong with a parameter.
type paramError struct {
	at     int
	reason string
}

func (e *paramError) Error() string { return fmt.Sprintf("params[%d]: %s", e.at, e.reason) }

func (*sqliteFile) problem(err error) (text string, passing, ok bool) {
	if e, ok := errors.AsType[*paramError](err); ok {
		return e.Error(), false, true
	}
	if errors.Is(err, errSeveral) {
		return "sql: must be one statement, not several with ; between them. Nothing was changed.", false, true
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	switch {
	case !ok && !errors.Is(err, errAway) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		// of database/sql: a number of parameters that does not fit, above all
		return "SQLite: " + strict.Clip(err.Error(), maxProblem) + ". Nothing was changed.", false, true
	case !ok:
		return "", false, false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_INTERRUPT:
		return "", false, true
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		passing = true
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR:
		return "", false, false
	}
	if errors.Is(err, errAway) {
		return "", false, false
	}
	return "SQLite: " + strict.Clip(e.Error(), maxProblem) + ". Nothing was changed.", passing, true
}

func (*sqliteFile) columns(tableName string) statement {
	var name any
	if tableName != "" {
		name = tableName
	}
	return statement{`SELECT m.name, m.type, c.name, c.type, c."notnull" <> 0, c.pk <> 0,
	(SELECT f."table" || coalesce('(' || f."to" || ')', '') FROM pragma_foreign_key_list(m.name) f WHERE f."from" = c.name LIMIT 1)
FROM sqlite_schema m JOIN pragma_table_xinfo(m.name) c
WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND c.hidden <> 1 AND (?1 IS NULL OR m.name = ?1)
ORDER BY m.name, c.cid`, []any{name}}
}
