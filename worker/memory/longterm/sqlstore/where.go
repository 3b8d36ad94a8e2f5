package sqlstore

import (
	"strings"
	"time"

	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// where is conditions on the items m and their parameters.
type where struct {
	conditions []string
	args       []any
}

func (w *where) add(condition string, args ...any) {
	w.conditions, w.args = append(w.conditions, condition), append(w.args, args...)
}

func (w *where) String() string { return " WHERE " + strings.Join(w.conditions, " AND ") }

// in are the items of a place, or of all places of the tenant, that pass a filter.
func in(at longterm.Place, f *longterm.Filter) *where {
	w := &where{}
	w.add("m.tenant = ?", at.Tenant)
	if at.Collection != "" {
		w.add("m.collection = ?", at.Collection)
	}
	for _, part := range []struct{ column, value string }{{"agent", f.Within.Agent}, {"session", f.Within.Session}, {"subject", f.Within.Subject}} {
		if part.value != "" {
			w.add("m."+part.column+" = ?", part.value)
		}
	}
	if v := f.VisibleTo; v != nil {
		w.add("m.agent IN ('', ?)", v.Agent)
		w.add("m.session IN ('', ?)", v.Session)
		w.add("m.subject IN ('', ?)", v.Subject)
	}
	for _, tag := range f.Tags {
		w.add("EXISTS (SELECT 1 FROM longshore_memory_tags t WHERE t.item = m.key AND t.tag = ?)", tag)
	}
	for name, value := range f.Equal {
		w.add("EXISTS (SELECT 1 FROM longshore_memory_fields f WHERE f.item = m.key AND f.name = ? AND f.value = ?)", name, longterm.Encode(value))
	}
	for i := range f.Ranges {
		from, to, isTime := f.Ranges[i].Bounds()
		column, condition, args := "f.number", "", []any{f.Ranges[i].Field}
		if isTime {
			column = "f.instant"
		}
		if from != nil {
			condition += " AND " + column + " >= ?"
			args = append(args, *from)
		}
		if to != nil {
			condition += " AND " + column + " < ?"
			args = append(args, *to)
		}
		w.add("EXISTS (SELECT 1 FROM longshore_memory_fields f WHERE f.item = m.key AND f.name = ?"+condition+")", args...)
	}
	if !f.CreatedFrom.IsZero() {
		w.add("m.created >= ?", f.CreatedFrom.UnixMicro())
	}
	if !f.CreatedTo.IsZero() {
		w.add("m.created < ?", f.CreatedTo.UnixMicro())
	}
	return w
}

// alive leaves out what has expired.
func (w *where) alive(now time.Time) *where {
	w.add("(m.expires IS NULL OR m.expires > ?)", now.UnixMicro())
	return w
}

// marks are so many parameters, in parentheses.
func marks(n int) string { return "(" + strings.TrimSuffix(strings.Repeat("?,", n), ",") + ")" }

// anys are values as parameters.
func anys[T any](values []T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
