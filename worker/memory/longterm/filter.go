package longterm

import (
	"slices"
	"time"
)

// MaxConditions bounds the fields and the ranges of a filter, each.
const MaxConditions = 32

// Filter is what an item must meet; the zero value passes all.
type Filter struct {
	// Within passes items whose scope has these parts; empty parts do not matter.
	Within Scope `json:"within,omitzero"`
	// VisibleTo passes items of which each part of the scope is empty or this one: what an agent may recall. nil: all.
	VisibleTo *Scope         `json:"visibleTo,omitempty"`
	Tags      []string       `json:"tags,omitempty"`  // all of them
	Equal     map[string]any `json:"equal,omitempty"` // fields with these values
	Ranges    []Range        `json:"ranges,omitempty"`
	// CreatedFrom is the first time that passes, CreatedTo the first after it that does not. Zero: no bound.
	CreatedFrom time.Time `json:"createdFrom,omitzero"`
	CreatedTo   time.Time `json:"createdTo,omitzero"`
}

// Range passes items with a field from From up to, without, To: two numbers or two time.Time, one of which may be nil. A time is
// compared with fields that are strings in RFC 3339.
type Range struct {
	Field string `json:"field"`
	From  any    `json:"from,omitempty"`
	To    any    `json:"to,omitempty"`
}

// Query asks for the items that pass a filter, in pages.
type Query struct {
	Filter

	Limit  int    // of a page, 1 to MaxBatch. Default 100
	Cursor string // Next of the page before, of the same place and filter
}

// Search asks for the items that fit best. It needs Text, Vector or both.
type Search struct {
	Filter

	Text   string    // words; those of MaxWords are looked for, and none has to be there
	Vector []float32 // meaning
	Model  string    // that made Vector
	TopK   int       // 1 to MaxTopK. Default 10
}

// Deletion says what is removed: the items with the IDs, or those that pass a Filter, which must not be empty unless All says so. With
// Filter or All the collection of the place may be empty: then all of the tenant are meant.
type Deletion struct {
	IDs    []string
	Filter Filter
	All    bool
}

// Bounds of calls.
const (
	MaxBatch     = 1000 // items of a write, ids of a read, items of a page
	MaxTopK      = 100
	defaultLimit = 100
	defaultTopK  = 10
)

// Means reports whether a deletion that has passed its check is about an item of its place.
func (d Deletion) Means(it *Item) bool {
	if len(d.IDs) > 0 {
		return slices.Contains(d.IDs, it.ID)
	}
	return d.Filter.Passes(it)
}

// Passes reports whether an item that has passed its checks meets a filter that has.
func (f *Filter) Passes(it *Item) bool {
	within := func(want, is string) bool { return want == "" || want == is }
	if !within(f.Within.Agent, it.Scope.Agent) || !within(f.Within.Session, it.Scope.Session) || !within(f.Within.Subject, it.Scope.Subject) {
		return false
	}
	if v := f.VisibleTo; v != nil {
		seen := func(by, is string) bool { return is == "" || is == by }
		if !seen(v.Agent, it.Scope.Agent) || !seen(v.Session, it.Scope.Session) || !seen(v.Subject, it.Scope.Subject) {
			return false
		}
	}
	for _, tag := range f.Tags {
		if !slices.Contains(it.Tags, tag) {
			return false
		}
	}
	for name, value := range f.Equal {
		if is, ok := it.Fields[name]; !ok || encode(is) != encode(value) {
			return false
		}
	}
	for _, r := range f.Ranges {
		if !r.passes(it.Fields[r.Field]) {
			return false
		}
	}
	return (f.CreatedFrom.IsZero() || !it.Created.Before(f.CreatedFrom)) && (f.CreatedTo.IsZero() || it.Created.Before(f.CreatedTo))
}

func (r *Range) passes(value any) bool {
	from, to, isTime := r.bounds()
	is, ok := Number(value)
	if isTime {
		is, ok = Instant(value)
	}
	return ok && (from == nil || is >= *from) && (to == nil || is < *to)
}

// empty reports whether a filter passes everything.
func (f *Filter) empty() bool {
	return f.Within == Scope{} && f.VisibleTo == nil && len(f.Tags)+len(f.Equal)+len(f.Ranges) == 0 && f.CreatedFrom.IsZero() && f.CreatedTo.IsZero()
}
