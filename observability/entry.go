package observability

import (
	"context"
	"log/slog"
	"slices"
)

// Attributes that an entry has a field for. A run is called task_id by those who log.
const (
	keyComponent = "component"
	keyTenant    = "tenant"
	keyTask      = "task_id"
	keyRun       = "run"
	keyStep      = "step"
	keyAttempt   = "attempt"
	keyWorker    = "worker"

	groupData = "data"
)

// unnamed is the component of what comes from no particular one.
const unnamed = "longshore"

// entryHandler makes records have the shape of a logentry.LogEntry and hands them on.
type entryHandler struct {
	next slog.Handler
	kept scopes
}

// Enabled implements slog.Handler.
func (h *entryHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// Handle implements slog.Handler.
func (h *entryHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.next.Handle(ctx, h.kept.sort(&r).record(&r))
}

// WithAttrs implements slog.Handler.
func (h *entryHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &entryHandler{h.next, h.kept.with(attrs)}
}

// WithGroup implements slog.Handler.
func (h *entryHandler) WithGroup(name string) slog.Handler {
	return &entryHandler{h.next, h.kept.open(name)}
}

// scopes are the attributes of a logger: those of itself, and those of the groups that are open, the outermost first.
// The zero value has none. They are never changed, only copied.
type scopes []scope

type scope struct {
	name  string // of the group; empty: of none
	attrs []slog.Attr
}

func (s scopes) with(attrs []slog.Attr) scopes {
	if len(attrs) == 0 {
		return s
	}
	out := slices.Clone(s)
	if len(out) == 0 {
		out = scopes{{}}
	}
	last := &out[len(out)-1]
	last.attrs = append(slices.Clip(last.attrs), attrs...)
	return out
}

func (s scopes) open(name string) scopes {
	if name == "" {
		return s
	}
	if len(s) == 0 {
		s = scopes{{}}
	}
	return append(slices.Clip(s), scope{name: name})
}

// sorted are the attributes of a record by where they stand in an entry.
type sorted struct {
	component, tenant, run, worker, step, attempt slog.Attr // without a key: there is none
	data                                          []slog.Attr
}

// sort puts attributes into their places. Of several with the same name the last counts; what is not of the type that
// the entry has for it is data.
func (s scopes) sort(r *slog.Record) *sorted {
	attrs := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	for i := len(s) - 1; i > 0; i-- { // from the inside
		attrs = []slog.Attr{{Key: s[i].name, Value: slog.GroupValue(slices.Concat(s[i].attrs, attrs)...)}}
	}
	out := &sorted{component: slog.String(keyComponent, unnamed)}
	if len(s) > 0 {
		out.add(s[0].attrs)
	}
	out.add(attrs)
	return out
}

func (s *sorted) add(attrs []slog.Attr) {
	for _, a := range attrs {
		if at := s.place(a); at != nil {
			*at = a
			continue
		}
		s.data = append(s.data, a)
	}
	if s.run.Key == keyTask {
		s.run.Key = keyRun
	}
}

// place is where an attribute stands; nil: in data.
func (s *sorted) place(a slog.Attr) *slog.Attr {
	text := a.Value.Kind() == slog.KindString && a.Value.String() != ""
	number := a.Value.Kind() == slog.KindInt64 && a.Value.Int64() >= 0
	switch {
	case a.Key == keyComponent && text:
		return &s.component
	case a.Key == keyTenant && text:
		return &s.tenant
	case (a.Key == keyTask || a.Key == keyRun) && text:
		return &s.run
	case a.Key == keyWorker && text:
		return &s.worker
	case a.Key == keyStep && number:
		return &s.step
	case a.Key == keyAttempt && number:
		return &s.attempt
	default:
		return nil
	}
}

// record is the record in the shape of an entry.
func (s *sorted) record(r *slog.Record) slog.Record {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	for _, a := range []slog.Attr{s.component, s.tenant, s.run, s.step, s.attempt, s.worker} {
		if a.Key != "" {
			out.AddAttrs(a)
		}
	}
	if len(s.data) > 0 {
		out.AddAttrs(slog.Attr{Key: groupData, Value: slog.GroupValue(s.data...)})
	}
	return out
}
