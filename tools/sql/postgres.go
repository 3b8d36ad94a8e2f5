package sql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	// How long a statement waits for a lock, so that one that is held for long costs less than the timeout.
	lockTime = 2 * time.Second
	// How long a commit may take, beyond the end of the call too: its outcome is worth more than the time.
	commitTime = 3 * time.Second
	// How long the server may take to notice that a connection ends.
	closeTime = time.Second
)

// postgres is a database of PostgreSQL. It opens a connection for each call: nothing that a statement leaves in a session is there
// for the next one.
type postgres struct {
	config *pgconn.Config
}

var _ database = (*postgres)(nil)

func newPostgres(dsn string, d *Database) (*postgres, error) {
	wrong := func(reason string) error { return &messages.FieldError{Field: "dsn", Reason: reason} }
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		return nil, wrong("the secret of the credential is not a URL such as postgres://user:password@host:5432/database")
	}
	config, err := parseURL(dsn)
	if err != nil {
		return nil, wrong("the secret of the credential " + err.Error())
	}
	config.MaxProtocolMessageBodyLen = 2*d.Bytes + 64<<10 // of a row above all: bytea comes as two digits a byte
	return &postgres{config}, nil
}

func (*postgres) kind() string { return "PostgreSQL" }

// powers says what a role could do beyond the database, through functions that a read-only transaction does not stop.
const powers = `SELECT
	(SELECT string_agg(rolname, ', ') FROM pg_catalog.pg_roles
		WHERE (rolsuper OR rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files'))
		AND pg_catalog.pg_has_role(session_user, oid, 'MEMBER')),
	EXISTS (SELECT FROM pg_catalog.pg_extension e
		JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.refobjid = e.oid
			AND d.classid = 'pg_catalog.pg_proc'::regclass AND d.deptype = 'e'
		JOIN pg_catalog.pg_proc p ON p.oid = d.objid
		WHERE e.extname = 'dblink' AND p.proname IN ('dblink', 'dblink_exec', 'dblink_connect', 'dblink_connect_u')
		AND pg_catalog.has_function_privilege(session_user, p.oid, 'EXECUTE'))`

// begin opens a connection with a transaction that ends with it.
func (p *postgres) begin(ctx context.Context, mode string) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, p.config.Copy())
	if err != nil {
		return nil, errors.Join(errAway, err)
	}
	left := time.Minute
	if end, ok := ctx.Deadline(); ok {
		left = max(time.Until(end), time.Millisecond)
	}
	setup := fmt.Sprintf(`BEGIN %s;
		SET LOCAL statement_timeout = %d; SET LOCAL lock_timeout = %d; SET LOCAL idle_in_transaction_session_timeout = %d;
		SET LOCAL client_encoding = 'UTF8'; SET LOCAL standard_conforming_strings = on; SET LOCAL datestyle = 'ISO, YMD';
		SET LOCAL timezone = 'UTC'; SET LOCAL intervalstyle = 'iso_8601'; SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1;
		%s`, mode, left.Milliseconds()+1, min(left, lockTime).Milliseconds()+1, (left+commitTime).Milliseconds()+1, powers)
	all, err := conn.Exec(ctx, setup).ReadAll()
	if err != nil {
		closed(ctx, conn)
		return nil, errors.Join(errAway, err)
	}
	if reason := unfit(all[len(all)-1]); reason != "" {
		closed(ctx, conn)
		return nil, &unfitError{reason}
	}
	return conn, nil
}

// unfit says why a role is too powerful, by the row of powers.
func unfit(r *pgconn.Result) string {
	if len(r.Rows) != 1 || len(r.Rows[0]) != 2 {
		return "what its role may do cannot be told"
	}
	row := r.Rows[0]
	if row[0] != nil {
		return fmt.Sprintf("its role is, or may become, %s, which can reach files and programs of the server: give it a role of its own",
			strict.Shown(string(row[0])))
	}
	if string(row[1]) == "t" {
		return "its role may call dblink, which reaches other servers: revoke EXECUTE on the functions of dblink from PUBLIC and from the role"
	}
	return ""
}

// closed ends a connection, and what the server still does for it.
func closed(ctx context.Context, conn *pgconn.PgConn) {
	soon, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	_ = conn.Close(soon) // a connection that does not close cleanly is closed all the same
	select {
	case <-conn.CleanupDone():
	case <-soon.Done():
	}
}

func (p *postgres) read(ctx context.Context, s statement, into *table) error {
	conn, err := p.begin(ctx, "READ ONLY")
	if err != nil {
		return err
	}
	defer closed(ctx, conn)
	_, err = run(ctx, conn, s, into, false)
	return err
}

func (p *postgres) write(ctx context.Context, s statement, into *table, most int64, begin func() error) (int64, error) {
	conn, err := p.begin(ctx, "READ WRITE")
	if err != nil {
		return 0, err
	}
	defer closed(ctx, conn)
	before, err := touched(ctx, conn)
	if err != nil {
		return 0, err
	}
	tag, err := run(ctx, conn, s, into, true)
	if err != nil {
		return 0, err
	}
	after, err := touched(ctx, conn)
	if err != nil {
		return 0, err
	}
	changed := after - before // a server that does not count has zero
	if !tag.Select() {
		changed = tag.RowsAffected()
	}
	if all := max(changed, after-before); all > most {
		return 0, &excessError{all, most}
	}
	if err := begin(); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer stop()
	done, err := conn.Exec(end, "COMMIT").ReadAll()
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok && pe.SeverityUnlocalized == "ERROR" {
		return 0, err // such as a constraint that is checked at the end: the server rolled back
	}
	if err != nil {
		return 0, &unknownError{err}
	}
	if len(done) != 1 || done[0].CommandTag.String() != "COMMIT" {
		return 0, errors.New("the server rolled back")
	}
	return changed, nil
}

// touched is how many rows this transaction has changed, those of a WITH, of triggers and of foreign keys too. A connection of a pooler
// may have counted some before.
func touched(ctx context.Context, conn *pgconn.PgConn) (int64, error) {
	all, err := conn.Exec(ctx, "SELECT coalesce(pg_catalog.sum(n_tup_ins OPERATOR(pg_catalog.+) n_tup_upd OPERATOR(pg_catalog.+) n_tup_del), 0) FROM pg_catalog.pg_stat_xact_all_tables").ReadAll()
	if err != nil {
		return 0, err
	}
	if len(all) != 1 || len(all[0].Rows) != 1 || len(all[0].Rows[0]) != 1 {
		return 0, errAway
	}
	return strconv.ParseInt(string(all[0].Rows[0][0]), 10, 64)
}

// run makes one statement; the server refuses a text that holds several. Rows that do not fit are left unread, or read and dropped when
// the statement must end well.
func run(ctx context.Context, conn *pgconn.PgConn, s statement, into *table, whole bool) (pgconn.CommandTag, error) {
	params := make([][]byte, len(s.params))
	for i, v := range s.params {
		params[i] = pgParam(v)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	rr := conn.ExecParams(ctx, s.sql, params, nil, nil, nil)
	var types *pgTypes
	for rr.NextRow() {
		fields := rr.FieldDescriptions()
		if types == nil {
			types = newPgTypes()
			if len(fields) > maxColumns {
				stop()
				_, _ = rr.Close()
				return pgconn.CommandTag{}, fmt.Errorf("a result may have %d columns", maxColumns)
			}
			into.head(types.columns(fields))
		}
		if into.truncated {
			continue
		}
		row := make([]json.RawMessage, len(fields))
		for i, v := range rr.Values() {
			row[i] = types.value(fields[i].DataTypeOID, v)
		}
		if !into.add(row) && !whole {
			stop() // and with it the statement: there may be no end of rows
			_, _ = rr.Close()
			return pgconn.CommandTag{}, nil
		}
	}
	fields := slices.Clone(rr.FieldDescriptions())
	tag, err := rr.Close()
	if _, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok && !whole {
		if types == nil {
			into.head(newPgTypes().columns(fields))
		}
		into.truncated = true
		return tag, nil
	}
	if err == nil && types == nil && len(fields) > 0 {
		into.head(newPgTypes().columns(fields))
	}
	return tag, err
}

// pgParam is a parameter as text, whose type the server knows.
func pgParam(v any) []byte {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return []byte(v)
	case exact:
		return []byte(v)
	case int64:
		return strconv.AppendInt(nil, v, 10)
	case bool:
		return strconv.AppendBool(nil, v)
	case []byte:
		return fmt.Appendf(nil, `\x%x`, v)
	case array:
		items := make([]string, len(v))
		for i, item := range v {
			if items[i] = "NULL"; item != nil {
				items[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(string(pgParam(item))) + `"`
			}
		}
		return []byte("{" + strings.Join(items, ",") + "}")
	default:
		return fmt.Append(nil, v)
	}
}

func (*postgres) problem(err error) (text string, passing, ok bool) {
	if _, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok {
		return "A row that the statement returns is too large. Nothing was changed.", false, true
	}
	pe, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || errors.Is(err, errAway) {
		return "", false, false
	}
	switch pe.Code[:min(len(pe.Code), 2)] {
	case "08", "28", "3D", "53": // the connection, who it is, the database, what the server lacks
		return "", false, false
	}
	switch pe.Code {
	case "57014": // the statement was stopped
		return "", false, true
	case "40001", "40P01", "55P03": // a conflict, a deadlock, a lock
		passing = true
	case "57P01", "57P02", "57P03", "57P05": // the server ends the connection
		return "", false, false
	}
	text = "PostgreSQL: " + pe.Message
	if pe.Detail != "" {
		text += ". " + pe.Detail
	}
	if pe.Hint != "" {
		text += ". " + pe.Hint
	}
	if pe.Position > 0 {
		text += fmt.Sprintf(" (at character %d)", pe.Position)
	}
	return strict.Clip(text, maxProblem) + " (SQLSTATE " + strict.Shown(pe.Code) + "). Nothing was changed.", passing, true
}

// maxProblem bounds what a model is told about an error of a database.
const maxProblem = 2 << 10

func (*postgres) columns(tableName string) statement {
	var name any
	if tableName != "" {
		name = tableName
	}
	return statement{`SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname),
	CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END,
	pg_catalog.quote_ident(a.attname), pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull,
	EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'p' AND a.attnum = ANY (k.conkey)),
	(SELECT k.confrelid::pg_catalog.regclass::text || '(' || pg_catalog.quote_ident(o.attname) || ')' FROM pg_catalog.pg_constraint k
		JOIN pg_catalog.pg_attribute o ON o.attrelid = k.confrelid AND o.attnum = k.confkey[pg_catalog.array_position(k.conkey, a.attnum)]
		WHERE k.conrelid = c.oid AND k.contype = 'f' AND a.attnum = ANY (k.conkey) ORDER BY k.oid LIMIT 1)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
	AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')
	AND ($1::text IS NULL OR $1::text IN (c.relname, n.nspname || '.' || c.relname, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)))
ORDER BY 1, a.attnum`, []any{name}}
}
