package sql

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

func (f *family) query(ctx context.Context, c tools.Call, in statementArgs) (tools.Result, error) {
	d, refusal := f.of(in.Database, c.Grants)
	if d == nil {
		return refused(refusal), nil
	}
	s, wrong := in.statement(readWords())
	if wrong != "" {
		return invalid(wrong), nil
	}
	got := &table{rows: d.Rows, bytes: d.Bytes}
	own, stop := context.WithTimeout(ctx, time.Duration(d.Timeout))
	defer stop()
	if err := d.ask(own, s, got); err != nil {
		return f.failed(ctx, own, d, err)
	}
	r := tools.Text(got.text(nil))
	if got.truncated && len(got.kept) == 0 {
		r = tools.Failure(fmt.Sprintf("The first row alone is larger than the %d bytes that a result may have: select fewer columns, or parts of them.", d.Bytes))
	}
	r.Meta = map[string]any{"database": d.name, "rows": len(got.kept), "bytes": got.size, "truncated": got.truncated}
	return r, nil
}

// ask reads on one of the connections of a database.
func (d *granted) ask(ctx context.Context, s statement, into *table) error {
	leave, err := d.place(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return d.read(ctx, s, into)
}

func (f *family) execute(ctx context.Context, c tools.Call, in statementArgs) (tools.Result, error) {
	d, refusal := f.of(in.Database, c.Grants)
	switch {
	case d == nil:
		return refused(refusal), nil
	case !d.Write:
		return refused(fmt.Sprintf("The operator does not let the database %q be written.", d.name)), nil
	case !slices.Contains(c.Grants.Writable, d.name):
		return refused(fmt.Sprintf("This agent may not write the database %q: its grants.writable does not name it.", d.name)), nil
	}
	s, wrong := in.statement(writeWords())
	if wrong != "" {
		return invalid(wrong), nil
	}
	got := &table{rows: d.Rows, bytes: d.Bytes}
	own, stop := context.WithTimeout(ctx, time.Duration(d.Timeout))
	defer stop()
	leave, err := d.place(own)
	if err != nil {
		return f.failed(ctx, own, d, err)
	}
	defer leave()
	var lost error // the run's, which ends the call
	changed, err := d.write(own, s, got, d.Changes, func() error {
		if c.Begin != nil {
			lost = c.Begin()
		}
		return lost
	})
	if lost != nil {
		return tools.Result{}, lost
	}
	if err != nil {
		return f.failed(ctx, own, d, err)
	}
	r := tools.Text(got.text(&changed))
	r.Meta = map[string]any{"database": d.name, "changed": changed, "rows": len(got.kept), "truncated": got.truncated}
	return r, nil
}

// statement is what the arguments say; the text says what is wrong with them.
func (in *statementArgs) statement(words []string) (s statement, wrong string) {
	if wrong = checkSQL(in.SQL, words); wrong != "" {
		return s, wrong
	}
	params, wrong := parseParams(in.Params)
	return statement{in.SQL, params}, wrong
}

// invalid is a Result about an argument.
func invalid(what string) tools.Result {
	r := tools.Failure(what)
	r.Code, r.Meta = messages.CodeInvalidInput, map[string]any{"reason": "invalid"}
	return r
}

// refused is a Result about what the operator or the agent does not grant.
func refused(why string) tools.Result {
	r := tools.Failure(why)
	r.Code, r.Meta = messages.CodePolicy, map[string]any{"reason": "refused"}
	return r
}
