// Package control has the requests that the dispatcher answers, and describes its operations as data. One value says what an operation is called, on
// which subject and at which path it is asked for, who may ask, what is audited, and where each field of its request
// stands over HTTP. The NATS endpoint, the HTTP route with its checks, the OpenAPI and AsyncAPI documents and the client
// over HTTP are made from it.
//
// Everything that serves or describes operations is handed a Table of them, which is Operations unless a program adds its own.
//
//	op := control.Of(control.SubjectSteer)
//	parts, err := op.Parts(request)     // the client: path, query, headers and body
//	body, err := op.Request(parts)      // the server: the same request again, as it would come over NATS
package control

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Headers of requests over HTTP.
const (
	// HeaderTenant says for whom a request is made; absent it is the caller's tenant, or the default one.
	HeaderTenant = "Longshore-Tenant"
	// HeaderBy says who makes a change; it is kept with the change.
	HeaderBy = "Longshore-By"
	// HeaderIdempotency makes a request safe to repeat.
	HeaderIdempotency = "Idempotency-Key"
	// HeaderIfMatch makes a change one of a revision, as an ETag names it.
	HeaderIfMatch = "If-Match"
	// HeaderManifest of an answer with a file names the list of files that it is in.
	HeaderManifest = "Longshore-Manifest"
)

// Operation is one request and its reply.
type Operation struct {
	Subject string // of the request over NATS; empty: it is over HTTP alone, whose API makes it of other requests
	Asks    any    // a value of the request's type
	Reply   any    // a value of the reply's type
	Tenants bool   // clients that are bound to a tenant may ask, on a subject of theirs
	Audited bool   // an acted event is made of it

	// Everywhere: every dispatcher does it, and the first reply counts. Else one dispatcher does.
	Everywhere bool
	// Untitled: the field name of the request is for people, and does not say what it is about.
	Untitled bool

	Failures []Failure // of this operation alone, in addition to those that any may have

	// What follows describes it over HTTP. An empty ID: it is not there.
	ID           string // in the OpenAPI document
	Tag, Summary string
	Said         string // instead of Summary over NATS, where what is replied differs; empty: as over HTTP
	Text         string // more about it
	Needs        Permission
	Method, Path string
	Query        []Parameter
	Headers      []Parameter
	Body         any               // a value of the type of the body; nil: there is none
	Optional     bool              // the body may be absent
	Status       int               // of success; 0: 200
	Also         int               // another status of success; 0: none
	Shows        any               // a value of the type of the reply over HTTP, which the API makes itself; nil: it is Reply
	Waits        bool              // it may take as long as there is something to wait for
	Known        bool              // callers must be known: it is refused while authentication is disabled
	OfAll        bool              // callers of all tenants who name none ask about all
	Missing      string            // what is said when the path names nothing, or what cannot be a name; empty: each its own
	Fixed        map[string]string // texts of the body that tell it from others at the same path
	Fields       map[string]string // where fields of the request stand, where the rules of place do not say it
	Newest       bool              // the word latest in the path stands for the newest revision
	Unprefixed   string            // the field that is the whole body: errors about its parts name the parts alone
	Author       string            // the field of that body that says who makes the change, where the request has no field by
	AnyName      bool              // the parts of the path may be any text; else they are 1 to 64 characters of A-Z a-z 0-9 _ -
	ETag         bool              // the field revision of the reply is its ETag too
	IfMatch      string            // the query that the header If-Match stands for too: the revision that a change is for
	Location     string            // where that is which the request made: a path whose {names} are fields of the reply
}

// Parameter of a query or a header.
type Parameter struct {
	Name, Text    string
	Kind          string // string, integer, boolean, duration, date-time
	Many          bool   // may be given more than once
	Example       string
	Most, Default int // of an integer; 0: unbounded, none
	OneOf         []string
	NotID         string        // why a text is refused that cannot be an id; empty: any may be
	Longest       int           // of a text, in bytes; 0: unbounded
	Ago           time.Duration // of a date-time: left out, it is so long before the request. Clients that mean any time say 1970
	Must          string        // a boolean that must be true, and why: it is a confirmation and no part of the request
	NoTenant      bool          // a boolean: true makes the request about what is of no tenant. Only callers of all tenants may say so
}

// Parts is where a request stands over HTTP.
type Parts struct {
	Path   map[string]string
	Query  url.Values
	Header map[string]string
	Body   json.RawMessage // nil: none
}

// In is where a field of a request stands.
type in string

const (
	inPath   in = "path"
	inQuery  in = "query"
	inHeader in = "header"
	inBody   in = "body"  // as a field of it
	inWhole  in = "whole" // is all of it
	inNone   in = "none"  // does not travel
)

// place is where a field of the request stands, and what it is called there.
//
// The tenant is a header. A field that the path names is there. What is left is in the body, if the operation has one,
// and in the query otherwise, where `by` is a header.
func (o *Operation) place(field string) (in, string) {
	if at, ok := o.Fields[field]; ok {
		where, name, named := strings.Cut(at, ":")
		if !named {
			name = field
		}
		return in(where), name
	}
	switch {
	case field == "tenant":
		return inHeader, HeaderTenant
	case strings.Contains(o.Path, "{"+field+"}"):
		return inPath, field
	case o.Body != nil:
		return inBody, field
	case field == "by":
		return inHeader, HeaderBy
	default:
		return inQuery, field
	}
}

// latest stands in a path for a revision that is not said.
const latest = "latest"

// FieldOverHTTP is what a field of the request is called over HTTP, as errors name it.
func (o *Operation) FieldOverHTTP(field string) string {
	if o.Unprefixed != "" {
		if rest, ok := strings.CutPrefix(field, o.Unprefixed+"."); ok {
			return rest
		}
	}
	first, rest, nested := strings.Cut(field, ".")
	if _, known := o.fields()[first]; !known {
		return field
	}
	where, name := o.place(first)
	switch {
	case where == inNone || where == inWhole:
		return field
	case nested:
		return name + "." + rest
	default:
		return name
	}
}

// fields are the fields of the request by their names in JSON.
func (o *Operation) fields() map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(o.Asks)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		fields[name] = kind
	}
	return fields
}

// Parts is where a request of the operation stands over HTTP. Fields that do not travel are left out.
func (o *Operation) Parts(request any) (Parts, error) {
	p := Parts{Path: map[string]string{}, Query: url.Values{}, Header: map[string]string{}}
	data, err := json.Marshal(request)
	if err != nil {
		return p, fmt.Errorf("encode request: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return p, fmt.Errorf("encode request: %w", err)
	}
	body := map[string]json.RawMessage{}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		value := fields[field]
		where, name := o.place(field)
		switch where {
		case inPath:
			p.Path[name] = plain(value)
		case inQuery:
			if err := addTo(p.Query, name, value); err != nil {
				return p, err
			}
		case inHeader:
			if text := plain(value); text != "" {
				p.Header[name] = text
			}
		case inWhole:
			p.Body = value
		case inBody:
			body[name] = value
		case inNone:
		}
	}
	if o.Unprefixed != "" && p.Body != nil {
		var whole map[string]json.RawMessage
		if err := json.Unmarshal(p.Body, &whole); err != nil {
			return p, fmt.Errorf("encode request: %w", err)
		}
		for part := range strings.SplitSeq(o.Path, "/") {
			name := strings.Trim(part, "{}")
			if _, given := p.Path[name]; !given && name != part {
				p.Path[name] = plain(whole[name])
			}
		}
	}
	if o.Newest {
		for part := range strings.SplitSeq(o.Path, "/") {
			if name := strings.Trim(part, "{}"); name != part && p.Path[name] == "" {
				p.Path[name] = latest
			}
		}
	}
	for _, q := range o.Query {
		if q.Must != "" {
			p.Query.Set(q.Name, "true")
		}
		if q.Ago > 0 && !p.Query.Has(q.Name) {
			p.Query.Set(q.Name, time.Unix(0, 0).UTC().Format(time.RFC3339))
		}
	}
	for name, text := range o.Fixed {
		if body[name], err = json.Marshal(text); err != nil {
			return p, fmt.Errorf("encode request: %w", err)
		}
	}
	if o.Body != nil && p.Body == nil && (len(body) > 0 || !o.Optional) {
		if p.Body, err = json.Marshal(body); err != nil {
			return p, fmt.Errorf("encode request: %w", err)
		}
	}
	return p, nil
}

// addTo adds a value to a query: each text of a list, each entry of a map as key=value.
func addTo(query url.Values, name string, value json.RawMessage) error {
	switch {
	case len(value) > 0 && value[0] == '[':
		var texts []string
		if err := json.Unmarshal(value, &texts); err != nil {
			return fmt.Errorf("encode %s: %w", name, err)
		}
		query[name] = append(query[name], texts...)
	case len(value) > 0 && value[0] == '{':
		var texts map[string]string
		if err := json.Unmarshal(value, &texts); err != nil {
			return fmt.Errorf("encode %s: %w", name, err)
		}
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			query.Add(name, key+"="+texts[key])
		}
	default:
		if text := plain(value); text != "" {
			query.Set(name, text)
		}
	}
	return nil
}

// plain is a scalar as text.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	if string(value) == "null" {
		return ""
	}
	return string(value)
}

// Request is the request that stands in parts, as it would come over NATS. The parts of the path and the query must have
// been found valid as text; what is wrong as a value is a *messages.FieldError that names the part.
func (o *Operation) Request(p Parts) (map[string]json.RawMessage, error) {
	request := map[string]json.RawMessage{}
	var body map[string]json.RawMessage
	for field, kind := range o.fields() {
		where, name := o.place(field)
		text, given := "", false
		switch where {
		case inPath:
			text, given = p.Path[name]
		case inQuery:
			if kind.Kind() == reflect.Slice || kind.Kind() == reflect.Map {
				value, err := several(name, p.Query[name], kind.Kind())
				if err != nil {
					return nil, err
				}
				if value != nil {
					request[field] = value
				}
				continue
			}
			text, given = p.Query.Get(name), p.Query.Get(name) != ""
		case inHeader:
			text, given = p.Header[name], p.Header[name] != ""
		case inWhole:
			if p.Body != nil {
				request[field] = p.Body
			}
			continue
		case inBody:
			if body == nil && p.Body != nil {
				if err := strict.Decode(p.Body, &body); err != nil {
					return nil, err
				}
			}
			if value, ok := body[name]; ok {
				request[field] = value
			}
			continue
		case inNone:
			continue
		}
		if !given {
			continue
		}
		if where == inPath && o.Newest && text == latest {
			continue
		}
		value, err := typed(name, text, kind)
		if err != nil {
			return nil, err
		}
		if where == inPath && string(value) == "0" {
			return nil, &messages.FieldError{Field: name, Reason: "must be a number from 1"}
		}
		request[field] = value
	}
	if o.Unprefixed == "" || p.Body == nil {
		return request, nil
	}
	named, err := o.name(p)
	if named != nil {
		request[o.Unprefixed] = named
	}
	return request, err
}

// name gives a body that is a whole field the name that the path has, where the request itself has none: an agent, a
// prompt or a schedule need not say its name again, and must not say another.
func (o *Operation) name(p Parts) (json.RawMessage, error) {
	fields := o.fields()
	for _, name := range slices.Sorted(maps.Keys(p.Path)) {
		if _, own := fields[name]; own {
			continue
		}
		var body map[string]json.RawMessage
		if err := strict.Decode(p.Body, &body); err != nil {
			return nil, err
		}
		if said := plain(body[name]); said != "" && said != p.Path[name] {
			return nil, &messages.FieldError{Field: name, Reason: "differs from that of the path"}
		}
		if said := plain(body["tenant"]); said != "" && o.Has("tenant") && said != p.Header[HeaderTenant] {
			return nil, &messages.FieldError{Field: "tenant", Reason: "differs from that of the path"}
		}
		value, err := json.Marshal(p.Path[name])
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		body[name] = value
		whole, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode body: %w", err)
		}
		return whole, nil
	}
	return nil, nil
}

// several are the texts of a parameter as a list, where a text may be more than one with commas between them, or as a map. They are
// nil if there is none.
func several(name string, texts []string, kind reflect.Kind) (json.RawMessage, error) {
	list, entries := Listed(texts), map[string]string{}
	if len(list) == 0 {
		return nil, nil
	}
	if kind == reflect.Slice {
		value, err := json.Marshal(list)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		return value, nil
	}
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, &messages.FieldError{Field: name, Reason: "must be key=value"}
		}
		if _, twice := entries[key]; twice {
			return nil, &messages.FieldError{Field: name, Reason: "names a key twice: no run has two values of it"}
		}
		entries[key] = value
	}
	value, err := json.Marshal(entries)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	return value, nil
}

// Listed are the values of a parameter that may be repeated or separated by commas.
func Listed(texts []string) []string {
	var out []string
	for _, text := range texts {
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}

// typed is a text as the value of a field.
func typed(name, text string, kind reflect.Type) (json.RawMessage, error) {
	switch kind.Kind() {
	case reflect.Bool:
		if text != "true" && text != "false" {
			return nil, &messages.FieldError{Field: name, Reason: "must be true or false"}
		}
		return json.RawMessage(text), nil
	case reflect.Int, reflect.Int64, reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return nil, &messages.FieldError{Field: name, Reason: "must be a number"}
		}
		return json.RawMessage(strconv.FormatUint(n, 10)), nil
	default:
		value, err := json.Marshal(text)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		return value, nil
	}
}

// Made is the Location of what a request made, by its reply.
func (o *Operation) Made(reply json.RawMessage) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(reply, &fields); err != nil {
		return "", fmt.Errorf("read the reply: %w", err)
	}
	parts := strings.Split(o.Location, "/")
	for i, part := range parts {
		if name := strings.Trim(part, "{}"); name != part {
			parts[i] = url.PathEscape(plain(fields[name]))
		}
	}
	return strings.Join(parts, "/"), nil
}

// Signed reports whether the field by of the request says who makes it. In a query it is a parameter like others.
func (o *Operation) Signed() bool {
	where, _ := o.place("by")
	return o.Has("by") && where != inQuery
}

// Keyed is the field that the header Idempotency-Key fills in when the request leaves it empty; empty: there is none.
func (o *Operation) Keyed() string {
	for field := range o.fields() {
		if where, name := o.place(field); where == inHeader && name == HeaderIdempotency {
			return field
		}
	}
	if o.Has("control") {
		return "control"
	}
	return ""
}

// Has reports whether the request has a field of this name.
func (o *Operation) Has(field string) bool {
	_, ok := o.fields()[field]
	return ok
}
