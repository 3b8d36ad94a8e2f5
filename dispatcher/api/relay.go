package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// controlled are the operations of a table that are there over HTTP. Each is relayed as the request that it would be over NATS, but for
// those that the API answers itself. Operations with one id are one route, of which a text of the body chooses.
func controlled(ops control.Table) []operation {
	var out []operation
	own := answers()
	for _, o := range ops {
		if o.ID == "" || slices.ContainsFunc(out, func(op operation) bool { return op.id == o.ID }) {
			continue
		}
		headers := o.Headers
		if o.IfMatch != "" {
			headers = append(slices.Clone(headers), control.Parameter{Name: control.HeaderIfMatch, Text: "Make the change only if this is the newest revision, as the ETag of a read has it."})
		}
		op := operation{
			method: o.Method, path: o.Path, id: o.ID, tag: o.Tag, summary: o.Summary, text: o.Text, needs: o.Needs,
			query: o.Query, headers: headers, body: o.Body, optional: o.Optional, reply: cmp.Or(o.Shows, o.Reply), status: o.Status, also: o.Also,
			waits: o.Waits, failures: o.Failures,
		}
		choices := slices.DeleteFunc(slices.Clone(ops), func(other control.Operation) bool { return other.ID != o.ID })
		if op.answer = own[o.ID].by(&o); op.answer == nil {
			op.answer = func(ctx context.Context, q *query) (any, error) { return q.relay(ctx, choices) }
		}
		out = append(out, op)
	}
	return out
}

// relay makes the request of an operation, and its reply the answer.
func (q *query) relay(ctx context.Context, choices control.Table) (any, error) {
	o, request, err := q.request(choices)
	if err != nil {
		return nil, err
	}
	if o.Waits {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, maxWait)
		defer cancel()
	}
	reply, err := q.api.cfg.Client.Ask(ctx, o, request)
	if err != nil {
		return nil, overHTTP(o, err)
	}
	return replied(o, reply)
}

// request reads the request of an operation, of several the one that the body chooses.
func (q *query) request(choices control.Table) (*control.Operation, json.RawMessage, error) {
	o := &choices[0]
	if o.Known && q.who == nil { // a key that any caller can make would be valid at dispatchers that authenticate
		return nil, nil, forbidden("authentication is disabled here: set LONGSHORE_AUTH=on, or use `longshore keys api`")
	}
	parts, err := q.parts(o)
	if err != nil {
		return nil, nil, err
	}
	if len(o.Fixed) > 0 {
		if o, err = chosen(choices, parts.Body); err != nil {
			return nil, nil, err
		}
	}
	fields, err := o.Request(parts)
	if err != nil {
		return nil, nil, err
	}
	if err := q.sign(o, fields); err != nil {
		return nil, nil, err
	}
	request, err := json.Marshal(fields)
	return o, request, err
}

// chosen is the operation whose fixed texts the body has. They are all of the same field.
func chosen(choices control.Table, body json.RawMessage) (*control.Operation, error) {
	var said map[string]json.RawMessage
	if err := strict.Decode(body, &said); err != nil {
		return nil, err
	}
	var field string
	var texts []string
	for i := range choices {
		for name, text := range choices[i].Fixed {
			if string(said[name]) == strconv.Quote(text) {
				return &choices[i], nil
			}
			field, texts = name, append(texts, text)
		}
	}
	return nil, &messages.FieldError{Field: field, Reason: "must be " + oneOf(texts)}
}

// oneOf is a list in words: a, b or c.
func oneOf(texts []string) string {
	last := len(texts) - 1
	if last < 1 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

// parts reads where a request stands.
func (q *query) parts(o *control.Operation) (p control.Parts, err error) {
	p = control.Parts{Path: map[string]string{}, Query: q.values, Header: map[string]string{}}
	for part := range strings.SplitSeq(o.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			v := q.r.PathValue(name)
			if !strict.ValidToken(v) && !o.AnyName {
				return p, &messages.FieldError{Field: name, Reason: "must be 1 to 64 characters of A-Z a-z 0-9 _ -"}
			}
			p.Path[name] = v
		}
	}
	if err := q.bounds(o, &p); err != nil {
		return p, err
	}
	if err := q.addressed(o, &p); err != nil {
		return p, err
	}
	p.Header[control.HeaderBy] = q.r.Header.Get(control.HeaderBy)
	if o.IfMatch != "" && q.r.Header.Get(control.HeaderIfMatch) != "" {
		revision, err := q.matched(o.IfMatch)
		if err != nil {
			return p, err
		}
		if revision != nil {
			p.Query.Set(o.IfMatch, strconv.FormatUint(*revision, 10))
		}
	}
	if o.Body == nil {
		return p, nil
	}
	if p.Body, err = q.raw(); err != nil {
		return p, err
	}
	switch {
	case len(p.Body) > 0:
		return p, strict.Decode(p.Body, reflect.New(reflect.TypeOf(o.Body)).Interface()) // as what it is, to name what is wrong
	case o.Optional:
		p.Body = nil
		return p, nil
	default:
		return p, &messages.FieldError{Field: "body", Reason: "is missing"}
	}
}

// addressed says for which tenant a request is, or refuses one about what is of no tenant.
func (q *query) addressed(o *control.Operation, p *control.Parts) (err error) {
	for _, is := range o.Query {
		if !is.NoTenant {
			continue
		}
		none, err := q.flag(is.Name)
		if err != nil {
			return err
		}
		if none {
			return q.forAll()
		}
	}
	if o.OfAll && q.who.AllTenants() && q.r.Header.Get(control.HeaderTenant) == "" {
		return nil
	}
	p.Header[control.HeaderTenant], err = q.tenant()
	return err
}

// bounds checks what parameters say of themselves, and fills in defaults.
func (q *query) bounds(o *control.Operation, p *control.Parts) error {
	for _, is := range o.Query {
		switch {
		case is.Must != "":
			sure, err := q.flag(is.Name)
			if err != nil {
				return err
			}
			if !sure {
				return problemf(http.StatusBadRequest, messages.CodeInvalidInput, is.Must+": give "+is.Name+"=true")
			}
		case is.Most > 0:
			n, err := q.number(is.Name, is.Default, is.Most)
			if err != nil {
				return err
			}
			if n > 0 {
				p.Query.Set(is.Name, strconv.Itoa(n))
			}
		case is.Kind == "date-time":
			if _, err := q.time(is.Name, time.Time{}); err != nil {
				return err
			}
			if is.Ago > 0 && q.text(is.Name) == "" {
				p.Query.Set(is.Name, time.Now().Add(-is.Ago).UTC().Format(time.RFC3339Nano))
			}
		default:
			if err := q.says(&is); err != nil {
				return err
			}
		}
	}
	return nil
}

// says checks a parameter that is text.
func (q *query) says(is *control.Parameter) error {
	wrong := func(reason string) error { return &messages.FieldError{Field: is.Name, Reason: reason} }
	text := q.text(is.Name)
	switch {
	case text == "":
	case is.NotID != "" && !strict.ValidToken(text):
		return wrong(is.NotID)
	case is.Longest > 0 && len(text) > is.Longest:
		return wrong(fmt.Sprintf("is longer than %d bytes", is.Longest))
	case len(is.OneOf) > 0:
		for _, one := range q.list(is.Name) {
			if !slices.Contains(is.OneOf, one) {
				return wrong("must be " + oneOf(is.OneOf))
			}
		}
	}
	return nil
}

// sign names the caller where it is known, and what makes the request safe to repeat.
func (q *query) sign(o *control.Operation, fields map[string]json.RawMessage) (err error) {
	if o.Author != "" {
		return q.author(o, fields)
	}
	if o.Signed() {
		if who := q.by(""); who != "" {
			fields["by"], err = json.Marshal(who)
		}
	}
	if err != nil {
		return err
	}
	field := o.Keyed()
	if field == "" || fields[field] != nil && string(fields[field]) != `""` {
		return nil
	}
	id, err := q.key()
	if err == nil && id != "" {
		fields[field], err = json.Marshal(id)
	}
	return err
}

// key is the id of a request by the header that makes it safe to repeat.
func (q *query) key() (string, error) {
	key := q.r.Header.Get(control.HeaderIdempotency)
	switch {
	case key == "":
		return "", nil
	case len(key) > 256:
		return "", &messages.FieldError{Field: control.HeaderIdempotency, Reason: "is longer than 256 characters"}
	default:
		return keyID(key), nil
	}
}

// author says who makes the change in the field of the body that keeps it.
func (q *query) author(o *control.Operation, fields map[string]json.RawMessage) error {
	by := q.by(q.r.Header.Get(control.HeaderBy))
	if by == "" {
		return nil
	}
	var whole map[string]json.RawMessage
	err := json.Unmarshal(fields[o.Unprefixed], &whole)
	if err == nil {
		whole[o.Author], err = json.Marshal(by)
	}
	if err == nil {
		fields[o.Unprefixed], err = json.Marshal(whole)
	}
	return err
}

// overHTTP is what went wrong with a request, in the words that it has over HTTP.
func overHTTP(o *control.Operation, err error) error {
	p, ok := errors.AsType[*messages.Problem](err)
	if !ok {
		return err
	}
	said := *p
	said.Field = o.FieldOverHTTP(p.Field)
	switch {
	case o.Missing != "" && (p.Status == http.StatusNotFound || said.Field != "" && strings.Contains(o.Path, "{"+said.Field+"}")):
		return problemf(http.StatusNotFound, messages.CodeNotFound, o.Missing)
	case p.Status == http.StatusNotFound:
		said.Field = ""
	}
	return &said
}

// replied makes a reply an answer, with the headers that the operation has.
func replied(o *control.Operation, reply json.RawMessage) (any, error) {
	out := &replyOf{body: reply, header: http.Header{}}
	if o.ETag {
		var about struct {
			Revision uint64 `json:"revision"`
		}
		if err := json.Unmarshal(reply, &about); err != nil {
			return nil, err
		}
		out.header.Set("Etag", `"`+strconv.FormatUint(about.Revision, 10)+`"`)
	}
	if o.Location != "" {
		made, err := o.Made(reply)
		if err != nil {
			return nil, err
		}
		out.header.Set("Location", made)
	}
	return out, nil
}
