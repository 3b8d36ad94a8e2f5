package api

import (
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// headerIfMatch makes a change one of a revision, as an ETag names it.
const headerIfMatch = "If-Match"

// matched is the revision that a change is for: of the query, or of If-Match.
func (q *query) matched() (*uint64, error) {
	n, err := q.revision("ifRevision")
	tag := q.r.Header.Get(headerIfMatch)
	if err != nil || tag == "" || tag == "*" {
		return n, err
	}
	m, err := strconv.ParseUint(strings.Trim(tag, `"`), 10, 64)
	switch {
	case err != nil:
		return nil, &messages.FieldError{Field: headerIfMatch, Reason: "must be one revision"}
	case n != nil && *n != m:
		return nil, &messages.FieldError{Field: headerIfMatch, Reason: "is not that of ifRevision"}
	}
	return &m, nil
}

// revision is a number that may be absent, which is nil.
func (q *query) revision(name string) (*uint64, error) {
	v := q.text(name)
	if v == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return nil, &messages.FieldError{Field: name, Reason: "must be a number"}
	}
	return &n, nil
}
