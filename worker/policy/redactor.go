package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages/sensitive"
)

// Mark stands where a secret stood.
const Mark = sensitive.Mark

// MinSecret is the length in bytes below which a secret is not redacted: it would match ordinary words, and it can be guessed
// without a log anyway.
const MinSecret = 6

// Redactor replaces secrets in text. It never changes, so any number of goroutines may use it. The zero Redactor and
// a nil one replace nothing.
type Redactor struct {
	needles []string // what to look for
	longest int      // of the needles, in bytes
}

// NewRedactor returns a Redactor for exact values, white space around them left off. It also knows them in base64
// (inside longer data too, as in the header of basic authentication), in hex, as a list of numbers, and escaped for
// JSON, for Go and for URLs, as encoders do it or with every character escaped, but not with some of them. Values
// shorter than MinSecret are ignored. Values should be UTF-8: others change when they are written as JSON, and may
// then not be found.
func NewRedactor(secrets ...string) *Redactor {
	r := &Redactor{}
	for _, s := range secrets {
		if s = strings.TrimSpace(s); len(s) >= MinSecret {
			r.needles = append(r.needles, forms(s)...)
		}
	}
	slices.Sort(r.needles)
	r.needles = slices.Compact(r.needles)
	for _, n := range r.needles {
		r.longest = max(r.longest, len(n))
	}
	return r
}

// String returns s with a Mark in the place of each secret. Secrets that overlap share one. No secret is in
// what it returns, but for one that is a part of Mark.
func (r *Redactor) String(s string) string {
	if r == nil {
		return s
	}
	hidden := r.spans(s)
	if len(hidden) == 0 {
		return s
	}
	out := string(cover(nil, s, hidden))
	if len(r.spans(out)) > 0 {
		return Mark // a Mark and what stands beside it happen to read like a secret
	}
	return out
}

// Index is where the first secret in s begins, in bytes; -1 if there is none.
func (r *Redactor) Index(s string) int {
	if r == nil {
		return -1
	}
	if found := r.spans(s); len(found) > 0 {
		return found[0].start
	}
	return -1
}

// span is a part of a text, from start to before end.
type span struct{ start, end int }

// spans is where the needles stand in s, in order, with those that overlap joined: no end of a secret may show that
// begins inside another one.
func (r *Redactor) spans(s string) []span {
	var found []span
	for _, needle := range r.needles {
		found = append(found, occurrences(s, needle)...)
	}
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	joined := found[:0]
	for _, next := range found {
		joined = join(joined, next)
	}
	return joined
}

func occurrences(s, needle string) []span {
	var found []span
	for from := 0; ; {
		i := strings.Index(s[from:], needle)
		if i < 0 {
			return found
		}
		found = join(found, span{from + i, from + i + len(needle)})
		from += i + 1
	}
}

// join adds a span that does not start before the last one.
func join(spans []span, next span) []span {
	if n := len(spans); n > 0 && next.start < spans[n-1].end {
		spans[n-1].end = max(spans[n-1].end, next.end)
		return spans
	}
	return append(spans, next)
}

// cover appends s to out, with a Mark in the place of each span.
func cover(out []byte, s string, hidden []span) []byte {
	from := 0
	for _, h := range hidden {
		out = append(out, s[from:h.start]...)
		out = append(out, Mark...)
		from = h.end
	}
	return append(out, s[from:]...)
}
