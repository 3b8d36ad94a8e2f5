package api

import (
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// matched is the revision that a change is for: of a parameter of the query, or of If-Match.
func (q *query) matched(parameter string) (*uint64, error) {
	n, err := q.revision(parameter)
	tag := q.r.Header.Get(control.HeaderIfMatch)
	if err != nil || tag == "" || tag == "*" {
		return n, err
	}
	m, err := strconv.ParseUint(strings.Trim(tag, `"`), 10, 64)
	switch {
	case err != nil:
		return nil, &messages.FieldError{Field: control.HeaderIfMatch, Reason: "must be one revision"}
	case n != nil && *n != m:
		return nil, &messages.FieldError{Field: control.HeaderIfMatch, Reason: "is not that of " + parameter}
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
