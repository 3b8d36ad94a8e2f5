package longterm

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// The checks of this file come before a store does anything. Their errors are *messages.FieldError.

// Check reports whether a place can be written to and searched.
func (p Place) Check() error {
	if err := strict.CheckToken("tenant", p.Tenant); err != nil {
		return err
	}
	return strict.CheckToken("collection", p.Collection)
}

// CheckItems reports whether items can be written, and returns them as they are kept: tags in order and once, numbers as float64,
// times in UTC to the microsecond, now where Created is zero. What it returns shares no slice or map with what it was given. Of items
// with one id the last is kept.
func CheckItems(items []Item, now time.Time) ([]Item, error) {
	if len(items) > MaxBatch {
		return nil, &messages.FieldError{Field: "items", Reason: fmt.Sprintf("has %d items, and may have %d at once", len(items), MaxBatch)}
	}
	kept, index := make([]Item, 0, len(items)), map[string]int{}
	for i := range items {
		it, err := items[i].checked(now)
		if err != nil {
			return nil, strict.Under(fmt.Sprintf("items[%d]", i), err)
		}
		if at, again := index[it.ID]; again {
			kept[at] = it
			continue
		}
		index[it.ID] = len(kept)
		kept = append(kept, it)
	}
	return kept, nil
}

func (it *Item) checked(now time.Time) (Item, error) {
	c := *it
	if err := strict.CheckToken("id", c.ID); err != nil {
		return c, err
	}
	if err := c.Scope.check("scope"); err != nil {
		return c, err
	}
	if err := strict.CheckText("text", c.Text, MaxText); err != nil {
		return c, err
	}
	if err := c.Source.check(); err != nil {
		return c, err
	}
	var err error
	if c.Fields, err = c.Fields.checked(); err != nil {
		return c, err
	}
	if c.Tags, err = checkTags("tags", c.Tags); err != nil {
		return c, err
	}
	if c.Created, err = checkTime("created", c.Created); err != nil {
		return c, err
	}
	if c.Created.IsZero() {
		c.Created = now.UTC().Truncate(time.Microsecond)
	}
	if c.Expires, err = checkTime("expires", c.Expires); err != nil {
		return c, err
	}
	if err := checkVector(c.Vector, c.Model); err != nil {
		return c, err
	}
	if len(c.Sealed) > maxSealed {
		return c, &messages.FieldError{Field: "sealed", Reason: fmt.Sprintf("larger than %d bytes", maxSealed)}
	}
	c.Vector, c.Sealed = slices.Clone(c.Vector), slices.Clone(c.Sealed)
	return c, nil
}

// maxSealed has room for all that is sealed, and for what sealing adds.
const maxSealed = 2*MaxText + 4*MaxDimensions + 16<<10

func (s Scope) check(field string) error {
	for _, part := range []struct{ name, value string }{{"agent", s.Agent}, {"session", s.Session}} {
		if part.value != "" {
			if err := strict.CheckToken(field+"."+part.name, part.value); err != nil {
				return err
			}
		}
	}
	return checkName(field+".subject", s.Subject, MaxSubject)
}

func (s Source) check() error {
	if s.Run != "" {
		if err := strict.CheckToken("source.run", s.Run); err != nil {
			return err
		}
	}
	switch {
	case s.Step < 0 || s.Step > math.MaxInt32:
		return &messages.FieldError{Field: "source.step", Reason: "must be 0 to 2147483647"}
	case s.Position < 0 || s.Position > math.MaxInt32:
		return &messages.FieldError{Field: "source.position", Reason: "must be 0 to 2147483647"}
	}
	return checkName("source.document", s.Document, MaxSource)
}

// checkName refuses what is not one line of text.
func checkName(field, s string, limit int) error {
	if err := strict.CheckText(field, s, limit); err != nil {
		return err
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return &messages.FieldError{Field: field, Reason: "holds a control character"}
	}
	return nil
}

func (f Fields) checked() (Fields, error) {
	if len(f) == 0 {
		return nil, nil
	}
	if len(f) > MaxFields {
		return nil, &messages.FieldError{Field: "fields", Reason: fmt.Sprintf("has %d fields, and may have %d", len(f), MaxFields)}
	}
	kept, size := make(Fields, len(f)), 0
	for name, value := range f {
		v, err := checkValue("fields", name, value)
		if err != nil {
			return nil, err
		}
		kept[name] = v
		size += len(name) + len(encode(v))
	}
	if size > MaxFieldBytes {
		return nil, &messages.FieldError{Field: "fields", Reason: fmt.Sprintf("has %d bytes, and may have %d", size, MaxFieldBytes)}
	}
	return kept, nil
}

func checkFieldName(field, name string) error {
	if name == "" {
		return &messages.FieldError{Field: field, Reason: "has a field without a name"}
	}
	return checkName(field+"."+strict.Shown(name), name, MaxFieldName)
}

func checkValue(field, name string, value any) (any, error) {
	if err := checkFieldName(field, name); err != nil {
		return nil, err
	}
	field += "." + strict.Shown(name)
	v := plain(value)
	if v == nil {
		return nil, &messages.FieldError{Field: field, Reason: "must be a string, true, false or a finite number"}
	}
	if text, ok := v.(string); ok {
		if err := strict.CheckText(field, text, MaxFieldText); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func checkTags(field string, tags []string) ([]string, error) {
	if len(tags) > MaxTags {
		return nil, &messages.FieldError{Field: field, Reason: fmt.Sprintf("has %d tags, and may have %d", len(tags), MaxTags)}
	}
	for i, tag := range tags {
		at := fmt.Sprintf("%s[%d]", field, i)
		if tag == "" {
			return nil, &messages.FieldError{Field: at, Reason: "is empty"}
		}
		if err := checkName(at, tag, MaxTag); err != nil {
			return nil, err
		}
	}
	if len(tags) == 0 {
		return nil, nil
	}
	kept := slices.Clone(tags)
	slices.Sort(kept)
	return slices.Compact(kept), nil
}

// checkTime keeps times within years that every database has.
func checkTime(field string, t time.Time) (time.Time, error) {
	if t.IsZero() {
		return time.Time{}, nil
	}
	if y := t.UTC().Year(); y < 1900 || y > 9999 {
		return time.Time{}, &messages.FieldError{Field: field, Reason: "must be in the years 1900 to 9999"}
	}
	return t.UTC().Truncate(time.Microsecond), nil
}

func checkVector(vector []float32, model string) error {
	if err := checkName("model", model, MaxModel); err != nil {
		return err
	}
	if len(vector) > MaxDimensions {
		return &messages.FieldError{Field: "vector", Reason: fmt.Sprintf("has %d dimensions, and may have %d", len(vector), MaxDimensions)}
	}
	var sum float64
	for i, x := range vector {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return &messages.FieldError{Field: fmt.Sprintf("vector[%d]", i), Reason: "must be a finite number"}
		}
		sum += float64(x) * float64(x)
	}
	if len(vector) > 0 && (sum < minNorm || math.IsInf(float64(float32(sum)), 0)) {
		return &messages.FieldError{Field: "vector", Reason: "its length must not be 0 or beyond what a float32 holds"}
	}
	return nil
}

// minNorm is the square of a vector's length below which it has no direction.
const minNorm = 1e-30

// CheckIDs reports whether items can be asked for.
func CheckIDs(ids []string) error {
	if len(ids) > MaxBatch {
		return &messages.FieldError{Field: "ids", Reason: fmt.Sprintf("has %d ids, and may have %d at once", len(ids), MaxBatch)}
	}
	for i, id := range ids {
		if err := strict.CheckToken(fmt.Sprintf("ids[%d]", i), id); err != nil {
			return err
		}
	}
	return nil
}

// checkFilter returns a filter as stores take it.
func checkFilter(f Filter) (Filter, error) {
	if err := f.Within.check("within"); err != nil {
		return f, err
	}
	if f.VisibleTo != nil {
		if err := f.VisibleTo.check("visibleTo"); err != nil {
			return f, err
		}
	}
	var err error
	if f.Tags, err = checkTags("tags", f.Tags); err != nil {
		return f, err
	}
	if f.Equal, err = checkEqual(f.Equal); err != nil {
		return f, err
	}
	if len(f.Ranges) > MaxConditions {
		return f, &messages.FieldError{Field: "ranges", Reason: fmt.Sprintf("has %d ranges, and may have %d", len(f.Ranges), MaxConditions)}
	}
	for i, r := range f.Ranges {
		if err := r.check(); err != nil {
			return f, strict.Under(fmt.Sprintf("ranges[%d]", i), err)
		}
	}
	if f.CreatedFrom, err = checkTime("createdFrom", f.CreatedFrom); err != nil {
		return f, err
	}
	f.CreatedTo, err = checkTime("createdTo", f.CreatedTo)
	return f, err
}

func checkEqual(equal map[string]any) (map[string]any, error) {
	if len(equal) == 0 {
		return nil, nil
	}
	if len(equal) > MaxConditions {
		return nil, &messages.FieldError{Field: "equal", Reason: fmt.Sprintf("has %d fields, and may have %d", len(equal), MaxConditions)}
	}
	kept := make(map[string]any, len(equal))
	for name, value := range equal {
		v, err := checkValue("equal", name, value)
		if err != nil {
			return nil, err
		}
		kept[name] = v
	}
	return kept, nil
}

func (r *Range) check() error {
	if err := checkFieldName("field", r.Field); err != nil {
		return err
	}
	if r.From == nil && r.To == nil {
		return &messages.FieldError{Field: "from", Reason: "a range needs from or to"}
	}
	kind := ""
	for _, bound := range []struct {
		name  string
		value any
	}{{"from", r.From}, {"to", r.To}} {
		if bound.value == nil {
			continue
		}
		is := "number"
		if t, ok := bound.value.(time.Time); ok {
			is = "time"
			if _, err := checkTime(bound.name, t); err != nil {
				return err
			}
		} else if _, ok := Number(bound.value); !ok {
			return &messages.FieldError{Field: bound.name, Reason: "must be a finite number or a time"}
		}
		if kind != "" && kind != is {
			return &messages.FieldError{Field: bound.name, Reason: "from and to must both be numbers or both be times"}
		}
		kind = is
	}
	return nil
}

// Check returns a query as stores take it, and where its page begins.
func (q Query) Check(at Place) (Query, Position, error) {
	if err := at.Check(); err != nil {
		return q, Position{}, err
	}
	var err error
	if q.Filter, err = checkFilter(q.Filter); err != nil {
		return q, Position{}, err
	}
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	if q.Limit < 0 || q.Limit > MaxBatch {
		return q, Position{}, &messages.FieldError{Field: "limit", Reason: fmt.Sprintf("must be 1 to %d", MaxBatch)}
	}
	after, err := readCursor(at, &q.Filter, q.Cursor)
	return q, after, err
}

// Check returns a search as stores take it.
func (s Search) Check(at Place) (Search, error) {
	if err := at.Check(); err != nil {
		return s, err
	}
	var err error
	if s.Filter, err = checkFilter(s.Filter); err != nil {
		return s, err
	}
	if s.TopK == 0 {
		s.TopK = defaultTopK
	}
	if s.TopK < 0 || s.TopK > MaxTopK {
		return s, &messages.FieldError{Field: "topK", Reason: fmt.Sprintf("must be 1 to %d", MaxTopK)}
	}
	if err := strict.CheckText("text", s.Text, MaxText); err != nil {
		return s, err
	}
	if s.Text == "" && len(s.Vector) == 0 {
		return s, &messages.FieldError{Field: "text", Reason: "a search needs text or a vector"}
	}
	return s, checkVector(s.Vector, s.Model)
}

// Check returns a deletion as stores take it.
func (d Deletion) Check(at Place) (Deletion, error) {
	if len(d.IDs) > 0 {
		if err := at.Check(); err != nil {
			return d, err
		}
		if d.All || !d.Filter.empty() {
			return d, &messages.FieldError{Field: "ids", Reason: "must stand alone, without a filter"}
		}
		return d, CheckIDs(d.IDs)
	}
	if err := strict.CheckToken("tenant", at.Tenant); err != nil {
		return d, err
	}
	if at.Collection != "" {
		if err := at.Check(); err != nil {
			return d, err
		}
	}
	if d.All != d.Filter.empty() {
		return d, &messages.FieldError{Field: "filter", Reason: "say what to delete: ids, a filter, or all"}
	}
	var err error
	d.Filter, err = checkFilter(d.Filter)
	return d, err
}
