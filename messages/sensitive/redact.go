package sensitive

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Version is that of the rules by which this package finds things. It is at least 1.
const Version = 1

// Mark stands where something was taken out.
const Mark = "[redacted]"

// Span is a part of a text: bytes from Start to before End.
type Span struct{ Start, End int }

// Find returns where a category stands in a text, in order; nil for an unknown category.
func Find(name, text string) (found []Span) {
	all := categories()
	if i := slices.IndexFunc(all, func(c category) bool { return c.name == name }); i >= 0 {
		return Both(text, func(text string) []Span { return joined(all[i].find(text, nil)) })
	}
	return nil
}

// Redact returns a text with a Mark in the place of all that is found. A text without any is returned as it is.
func Redact(text string) string {
	found := spans(text)
	if len(found) == 0 {
		return text
	}
	var out strings.Builder
	from := 0
	for _, f := range found {
		out.WriteString(text[from:f.Start])
		out.WriteString(Mark)
		from = f.End
	}
	out.WriteString(text[from:])
	return out.String()
}

// RedactJSON is Redact for a JSON value, which stays one: each text in it is looked at, names of fields and numbers included, and
// a number that is taken out becomes a text. What is not JSON is one text.
func RedactJSON(value string) string {
	if escaped := strings.Contains(value, `\u`); !escaped {
		if out := Redact(value); out == value || json.Valid([]byte(out)) {
			return out
		}
	}
	dec := json.NewDecoder(strings.NewReader(value))
	dec.UseNumber()
	var tree any
	if !json.Valid([]byte(value)) || dec.Decode(&tree) != nil {
		return Redact(value)
	}
	clean, changed := walk(tree)
	if !changed {
		return value
	}
	data, err := json.Marshal(clean)
	if err != nil {
		return `"` + Mark + `"` // a tree of JSON always encodes
	}
	return string(data)
}

// walk redacts every text in a tree and reports whether any changed.
func walk(v any) (_ any, changed bool) {
	switch v := v.(type) {
	case string:
		out := Redact(v)
		return out, out != v
	case json.Number:
		if out := Redact(v.String()); out != v.String() {
			return out, true
		}
	case []any:
		for i := range v {
			out, c := walk(v[i])
			v[i], changed = out, changed || c
		}
		return v, changed
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out, c := walk(v[key])
			if name := Redact(key); name != key {
				delete(v, key)
				key, c = name, true
			}
			v[key], changed = out, changed || c
		}
		return v, changed
	}
	return v, false
}

// shortest is the length of the shortest address, in bytes.
const shortest = 6

// spans is what is found of all categories, in order.
func spans(text string) []Span {
	if len(text) < shortest {
		return nil
	}
	could, plain := look(text)
	found := spansOf(could, text)
	if plain {
		return found
	}
	return withView(text, found, spansIn)
}

func spansIn(text string) []Span {
	could, _ := look(text)
	return spansOf(could, text)
}

// spansOf is what is found of some categories.
func spansOf(could uint, text string) (found []Span) {
	all := categories()
	for i := range all {
		if could&(1<<i) != 0 {
			found = all[i].find(text, found)
		}
	}
	return joined(found)
}

// joined sorts spans and joins those that overlap.
func joined(found []Span) []Span {
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	out := found[:1]
	for _, next := range found[1:] {
		if last := &out[len(out)-1]; next.Start < last.End {
			last.End = max(last.End, next.End)
		} else {
			out = append(out, next)
		}
	}
	return out
}
