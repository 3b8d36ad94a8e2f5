package api

import (
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// query is a request that is being answered.
type query struct {
	api    *API
	op     *operation
	w      http.ResponseWriter // for deadlines; the answer is the operation's to return
	r      *http.Request
	values url.Values      // the parameters, once check has read them
	body   *incoming       // r.Body, with deadlines
	who    *auth.Principal // the caller; nil: authentication is disabled
}

// check refuses parameters that the operation does not know, that are there twice, empty, or cannot be read: one that was
// left out instead would widen what the request is about.
func (q *query) check() error {
	var err error
	if q.values, err = url.ParseQuery(q.r.URL.RawQuery); err != nil {
		return unreadable(q.r.URL.RawQuery)
	}
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		values := q.values[name]
		i := slices.IndexFunc(q.op.query, func(p control.Parameter) bool { return p.Name == name })
		switch {
		case i < 0:
			return &messages.FieldError{Field: strict.Clip(name, 64), Reason: "is no parameter of this request"}
		case len(values) > 1 && !q.op.query[i].Many:
			return &messages.FieldError{Field: name, Reason: "is given twice"}
		case slices.ContainsFunc(values, func(v string) bool { return strings.Trim(v, ", ") == "" }):
			return &messages.FieldError{Field: name, Reason: "is empty: leave it out"}
		}
	}
	for _, name := range []string{control.HeaderTenant, control.HeaderIdempotency} {
		if len(q.r.Header.Values(name)) > 1 {
			return &messages.FieldError{Field: name, Reason: "is given twice"}
		}
	}
	_, err = q.tenant()
	return err
}

// unreadable names the parameter that cannot be read.
func unreadable(query string) error {
	for part := range strings.SplitSeq(query, "&") {
		if _, err := url.ParseQuery(part); err != nil {
			name, _, _ := strings.Cut(part, "=")
			return &messages.FieldError{Field: strict.Clip(name, 64), Reason: "cannot be read: " + strict.Clip(err.Error(), 128)}
		}
	}
	return &messages.FieldError{Field: "query", Reason: "has too many parameters"}
}

// tenant for whom the request is made.
func (q *query) tenant() (string, error) {
	t := q.r.Header.Get(control.HeaderTenant)
	if len(q.r.Header.Values(control.HeaderTenant)) > 1 {
		return "", &messages.FieldError{Field: control.HeaderTenant, Reason: "is given twice"}
	}
	if t != "" && !strict.ValidToken(t) {
		return "", &messages.FieldError{Field: control.HeaderTenant, Reason: "must be 1 to 64 characters of A-Z a-z 0-9 _ -"}
	}
	return tenantOf(q.who, t)
}

// run is the run of the path.
func (q *query) run() (messages.Ref, error) {
	t, err := q.tenant()
	if err != nil {
		return messages.Ref{}, err
	}
	ref := messages.Ref{Tenant: t, Run: q.r.PathValue("id")}
	return ref, ref.Check()
}

func (q *query) text(name string) string { return q.values.Get(name) }

// list is the values of a parameter that may be repeated or separated by commas.
func (q *query) list(name string) []string {
	return control.Listed(q.values[name])
}

// limit is how many to list, defaultListed by default.
func (q *query) limit(most int) (int, error) {
	return q.number("limit", min(defaultListed, most), most)
}

// number is a parameter from 1 to most, the standard value unless it is given.
func (q *query) number(name string, standard, most int) (int, error) {
	v := q.text(name)
	if v == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > most {
		return 0, &messages.FieldError{Field: name, Reason: fmt.Sprintf("must be a number from 1 to %d", most)}
	}
	return n, nil
}

func (q *query) duration(name string, most time.Duration) (time.Duration, error) {
	v := q.text(name)
	if v == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 || d > most {
		return 0, &messages.FieldError{Field: name, Reason: fmt.Sprintf("must be a time such as 10s, %s at most", most)}
	}
	return d, nil
}

func (q *query) time(name string, def time.Time) (time.Time, error) {
	v := q.text(name)
	if v == "" {
		return def, nil
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return def, &messages.FieldError{Field: name, Reason: "must be a time such as 2026-01-02T15:04:05Z"}
	}
	return t, nil
}

// raw reads the body, bounded.
func (q *query) raw() ([]byte, error) {
	if ct := q.r.Header.Get("Content-Type"); ct != "" {
		media, _, err := mime.ParseMediaType(ct)
		if err != nil || media != "application/json" && media != "application/x-www-form-urlencoded" { // what curl -d says
			return nil, problemf(http.StatusUnsupportedMediaType, messages.CodeInvalidInput, "the body must be application/json")
		}
	}
	data, err := io.ReadAll(http.MaxBytesReader(q.w, q.body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	return data, nil
}

// read reads the body into v, strictly. An optional body may be empty.
func (q *query) read(v any) error {
	data, err := q.raw()
	switch {
	case err != nil:
		return err
	case len(data) == 0 && q.op.optional:
		return nil
	case len(data) == 0:
		return &messages.FieldError{Field: "body", Reason: "is missing"}
	}
	return strict.Decode(data, v)
}
