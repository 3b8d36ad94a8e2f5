// Package sql is the family of tools with which a model asks databases: sql_schema and sql_query read, and sql_execute changes rows.
// They reach only the databases that the operator names and the agent's grants leave, and write only where both say so and, by
// default, a person agrees to the call.
//
// A call is one statement in one transaction on a connection of its own, which is closed afterwards, so no session state outlives
// it. Values are parameters: no tool ever writes one into a statement. The database itself enforces that sql_query reads: a
// read-only transaction of PostgreSQL, a file of SQLite that is opened read-only.
package sql

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
)

// described holds the description of each tool, <tool>.md, and the schemas of their arguments.
//
//go:embed *.md *.json
var described embed.FS

// Sources tell where databases are.
type Sources struct {
	Secret func(credential string) (string, error) // of a credential
	Dir    string                                  // files of SQLite are relative to it
	Log    *slog.Logger                            // gets the names of databases that do not answer; nil discards it
}

// Tools are sql_schema, sql_query and, if any database may be written, sql_execute. No database need answer yet. An error about the
// Config is a *messages.FieldError, which holds no secret.
func Tools(c Config, from Sources) ([]tools.Tool, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	f := &family{named: map[string]*granted{}, log: from.Log}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	writes := false
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		d := c.Databases[name]
		opened, err := d.open(from)
		if err != nil {
			return nil, strict.Under("databases."+name, err)
		}
		f.named[name] = &granted{Database: *d, database: opened, name: name, places: make(chan struct{}, d.Connections)}
		f.timeout = max(f.timeout, time.Duration(d.Timeout)+commitTime+time.Second)
		writes = writes || d.Write
	}
	rows := []func() (tools.Tool, error){
		row(f, messages.ToolSpec{Name: "sql_schema", Effect: messages.EffectRead}, func(in schemaArgs) string { return in.Database }, f.schema),
		row(f, messages.ToolSpec{Name: "sql_query", Effect: messages.EffectRead}, func(in statementArgs) string { return in.Database }, f.query),
	}
	if writes {
		spec := messages.ToolSpec{Name: "sql_execute", Effect: messages.EffectOnce, Destructive: true}
		rows = append(rows, row(f, spec, func(in statementArgs) string { return in.Database }, f.execute))
	}
	all := make([]tools.Tool, len(rows))
	for i, open := range rows {
		var err error
		if all[i], err = open(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

type family struct {
	named   map[string]*granted
	timeout time.Duration // of a call
	log     *slog.Logger
}

// granted is a database of the operator.
type granted struct {
	Database
	database

	name   string
	places chan struct{} // one for each connection
}

// database is a kind of database. Both methods run one statement in a transaction of their own and call back for its rows.
type database interface {
	// read runs a statement that changes nothing, whatever it says.
	read(ctx context.Context, s statement, into *table) error
	// write runs a statement and commits it, unless it changes more than most rows or begin returns an error. An *unknownError says
	// that it may have been committed; after every other error it was not.
	write(ctx context.Context, s statement, into *table, most int64, begin func() error) (changed int64, err error)
	// columns is a statement that lists all columns, or those of one table.
	columns(table string) statement
	// problem is an error of the database about a statement in words for a model; false if it is none.
	problem(err error) (text string, passing, ok bool)
	// kind names it for a model.
	kind() string
}

// statementArgs are the arguments of sql_query and sql_execute.
type statementArgs struct {
	Database string            `json:"database"`
	SQL      string            `json:"sql"`
	Params   []json.RawMessage `json:"params"`
}

type schemaArgs struct {
	Database string `json:"database"`
	Table    string `json:"table"`
}

// row makes a tool whose calls are about a database.
func row[In any](f *family, spec messages.ToolSpec, about func(In) string, do func(context.Context, tools.Call, In) (tools.Result, error)) func() (tools.Tool, error) {
	return func() (tools.Tool, error) {
		text, err := described.ReadFile(spec.Name + ".md")
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", spec.Name, err)
		}
		spec.Description = strings.TrimSpace(string(text))
		if spec.InputSchema, err = described.ReadFile(spec.Name + ".json"); err != nil {
			return nil, fmt.Errorf("describe %s: %w", spec.Name, err)
		}
		key := func(in In) string { return "sql/" + url.PathEscape(about(in)) }
		t, err := tools.FuncOn(spec, key, do)
		if err != nil {
			return nil, err
		}
		on, ok := t.(tools.Resourcer)
		if !ok {
			return nil, fmt.Errorf("tool %s does not say what its calls are about", spec.Name)
		}
		return timed{t, on, f.timeout}, nil
	}
}

// timed is a tool with the longest of the operator's timeouts, whose calls are made again while a database is away.
type timed struct {
	tools.Tool
	tools.Resourcer

	timeout time.Duration
}

// Timeout implements tools.Timeouter.
func (t timed) Timeout() time.Duration { return t.timeout }

// Retry implements tools.Retrier.
func (timed) Retry() tools.Retry {
	return tools.Retry{Retries: 2, First: 200 * time.Millisecond, Most: 2 * time.Second}
}

// may are the names that an agent may ask.
func (f *family) may(g messages.Grants) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.named)), func(name string) bool { return !messages.Leaves(g.Databases, name) })
}

// of is the database of a call; the text says why the model may not ask it.
func (f *family) of(name string, g messages.Grants) (*granted, string) {
	if d := f.named[name]; d != nil && messages.Leaves(g.Databases, name) {
		return d, ""
	}
	return nil, fmt.Sprintf("There is no database %q for this agent. It may use: %s.", strict.Shown(name), orNone(f.may(g)))
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// place waits for one of the connections of a database.
func (d *granted) place(ctx context.Context) (leave func(), err error) {
	select {
	case d.places <- struct{}{}:
		return func() { <-d.places }, nil
	case <-ctx.Done():
		return nil, errBusy
	}
}

// What no database says of itself.
var (
	errBusy = errors.New("all connections are in use")
	errAway = errors.New("the database does not answer")
)

// unknownError says that a statement may have been committed.
type unknownError struct{ err error }

func (e *unknownError) Error() string { return "commit: " + e.err.Error() }
func (e *unknownError) Unwrap() error { return e.err }

// unfitError says why the operator's configuration does not let a database be asked.
type unfitError struct{ reason string }

func (e *unfitError) Error() string { return e.reason }

// excessError says that a statement would have changed too much.
type excessError struct{ changed, most int64 }

func (e *excessError) Error() string {
	return fmt.Sprintf("it would have changed %d rows, and at most %d may be", e.changed, e.most)
}

// failed is the answer after an error; own is the context of the database's timeout, which ends with ctx.
func (f *family) failed(ctx, own context.Context, d *granted, err error) (tools.Result, error) {
	if e, ok := errors.AsType[*unknownError](err); ok {
		f.log.WarnContext(ctx, "the outcome of a statement is unknown", "database", d.name, "err", e)
		r := tools.Failure("The connection broke while the change was committed. It may or may not have happened: look with sql_query before you repeat it.")
		r.Code = messages.CodeToolUnknownOutcome
		return d.about("unknown", r), nil
	}
	if e, ok := errors.AsType[*excessError](err); ok {
		return d.about("excess", tools.Failure("The statement was rolled back: "+e.Error()+". Nothing was changed.")), nil
	}
	if e, ok := errors.AsType[*unfitError](err); ok {
		f.log.WarnContext(ctx, "a database is not asked", "database", d.name, "reason", e.reason)
		return d.about("unfit", tools.Failure(fmt.Sprintf("The database %q is not used: %s. Only its operator can change that.", d.name, e.reason))), nil
	}
	text, passing, ok := d.problem(err)
	switch {
	case ctx.Err() != nil:
		return tools.Result{}, context.Cause(ctx)
	case own.Err() != nil, text == "" && ok:
		return d.about("timeout", tools.Failure(fmt.Sprintf("The statement did not finish within %v and was stopped. Nothing was changed.", time.Duration(d.Timeout)))), nil //nolint:nilerr // the model is told
	case ok:
		r := tools.Failure(text)
		r.Transient = passing
		return d.about("statement", r), nil
	}
	f.log.WarnContext(ctx, "a database does not answer", "database", d.name, "err", err)
	r := tools.Failure(fmt.Sprintf("The database %q does not answer now. Nothing was changed.", d.name))
	r.Transient = true
	return d.about("unavailable", r), nil
}

// about says in the meta of a failure which database and what kind it is.
func (d *granted) about(reason string, r tools.Result) tools.Result {
	r.Meta = map[string]any{"database": d.name, "reason": reason}
	return r
}
