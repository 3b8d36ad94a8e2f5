package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
)

// Limits of what a call tells of a schema.
const (
	maxListed    = 4000 // columns
	maxTableName = 256  // bytes
)

func (f *family) schema(ctx context.Context, c tools.Call, in schemaArgs) (tools.Result, error) {
	if in.Database == "" {
		return f.list(c), nil
	}
	d, refusal := f.of(in.Database, c.Grants)
	if d == nil {
		return refused(refusal), nil
	}
	if len(in.Table) > maxTableName || strings.ContainsRune(in.Table, 0) {
		return invalid(fmt.Sprintf("table: must be a name of at most %d bytes", maxTableName)), nil
	}
	// JSON is longer than what is made of it.
	got := &table{rows: maxListed, bytes: 2 * d.Bytes}
	own, stop := context.WithTimeout(ctx, time.Duration(d.Timeout))
	defer stop()
	if err := d.ask(own, d.columns(in.Table), got); err != nil {
		return f.failed(ctx, own, d, err)
	}
	text, tables, cut, err := listing(got, d.Bytes)
	if err != nil {
		return tools.Result{}, err
	}
	switch {
	case tables == 0 && in.Table != "":
		return d.about("missing", tools.Failure(fmt.Sprintf("There is no table %q that may be read.", strict.Shown(in.Table)))), nil
	case tables == 0:
		text = "(There are no tables that may be read.)"
	case cut:
		text += "\n(There is more: ask for a table by its name.)"
	}
	r := tools.Text(text)
	r.Meta = map[string]any{"database": d.name, "tables": tables, "truncated": cut}
	return r, nil
}

// list names the databases of an agent.
func (f *family) list(c tools.Call) tools.Result {
	var lines []string
	for _, name := range f.may(c.Grants) {
		d := f.named[name]
		line := fmt.Sprintf("%s (%s, read-only)", name, d.kind())
		if d.Write && slices.Contains(c.Grants.Writable, name) {
			line = fmt.Sprintf("%s (%s, writable)", name, d.kind())
		}
		if d.About != "" {
			line += ": " + d.About
		}
		lines = append(lines, line)
	}
	r := tools.Text(strings.Join(lines, "\n"))
	if len(lines) == 0 {
		r = tools.Text("(There is no database for this agent.)")
	}
	r.Meta = map[string]any{"databases": len(lines)}
	return r
}

// listing is a schema as text: a line for a table and one for each of its columns.
func listing(t *table, most int) (text string, tables int, cut bool, err error) {
	var b strings.Builder
	last := ""
	for _, raw := range t.kept {
		var name, kind, column, columnType string
		var notNull, primary any // SQLite has no booleans
		var refers *string
		row := []any{&name, &kind, &column, &columnType, &notNull, &primary, &refers}
		if err := json.Unmarshal(raw, &row); err != nil {
			return "", 0, false, fmt.Errorf("read the schema: %w", err)
		}
		var line string
		if name != last {
			line = fmt.Sprintf("%s (%s)\n", plain(name), kind)
		}
		line += "  " + plain(column)
		if columnType != "" {
			line += " " + plain(columnType)
		}
		if yes(primary) {
			line += " primary key"
		} else if yes(notNull) {
			line += " not null"
		}
		if refers != nil {
			line += " -> " + plain(*refers)
		}
		if b.Len()+len(line)+1 > most {
			return strings.TrimSuffix(b.String(), "\n"), tables, true, nil
		}
		if name != last {
			tables++
			last = name
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), tables, t.truncated, nil
}

func yes(v any) bool { return v == true || v == 1.0 }

// plain keeps a name from breaking out of its line.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' {
			return '\uFFFD'
		}
		return r
	}, name)
}
