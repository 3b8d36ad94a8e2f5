package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/api"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/dispatcher/auth/apikey"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	busevents "github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// BerthRequest asks for a place at a quay.
type BerthRequest struct {
	Tenant string  `json:"tenant,omitempty"`
	Name   string  `json:"name"` // of the quay
	Hours  int     `json:"hours,omitempty"`
	Ship   string  `json:"ship"`
	Length float64 `json:"length,omitempty"`
}

// Ship is the body of a BerthRequest over HTTP.
type Ship struct {
	Ship   string  `json:"ship"`
	Length float64 `json:"length,omitempty"`
}

// Berth is a place at a quay.
type Berth struct {
	Tenant string `json:"tenant"`
	Quay   string `json:"quay"`
	Ship   string `json:"ship"`
	Hours  int    `json:"hours"`
}

var errQuayFull = errors.New("the quay is full")

// berths is an operation that Longshore does not have.
func berths() control.Operation {
	return control.Operation{
		Subject: "longshore.berths.take", Asks: BerthRequest{}, Reply: Berth{}, Tenants: true, Audited: true,
		Failures: []control.Failure{{Err: errQuayFull, Status: http.StatusConflict, Code: messages.CodeConflict, Text: "The quay is full."}},
		ID:       "takeBerth", Tag: "berths", Summary: "Take a berth at a quay", Needs: control.Operate, Method: "POST", Path: "/v1/quays/{name}/berths",
		Query: []control.Parameter{{Name: "hours", Text: "For so long.", Kind: "integer", Most: 48, Default: 12}},
		Body:  Ship{}, Fields: map[string]string{"hours": "query"},
	}
}

func takeBerth(_ context.Context, r BerthRequest) (any, error) {
	switch {
	case r.Ship == "":
		return nil, &messages.FieldError{Field: "ship", Reason: "is missing"}
	case r.Name == "full":
		return nil, fmt.Errorf("%w: %s has to wait", errQuayFull, r.Ship)
	}
	return Berth{Tenant: r.Tenant, Quay: r.Name, Ship: r.Ship, Hours: r.Hours}, nil
}

// quay is a dispatcher, over NATS and HTTP, with a table of operations.
type quay struct {
	t       *testing.T
	url     string
	nc      *nats.Conn
	client  *dispatcher.Client
	headers map[control.AccessRole][]string
}

func openQuay(t *testing.T, table control.Table, handlers request.Handlers) *quay {
	t.Helper()
	servers := embeddedtest.Start(t, embedded.Config{NoRedis: true})
	nc := embeddedtest.Conn(t, servers)
	if err := bus.Setup(t.Context(), nc, bus.Streams{}); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	stored, hub := catalog.New(b), busevents.New(b).NewHub()
	logs := runlogs.New(b, runlogs.Config{})
	svc := service.New(service.Config{
		Conn: nc, Bus: b, Catalog: stored, Version: "0.0.0", Operations: table, Handlers: handlers,
		Controller: &runlog.Controller{
			Log: logs, Queue: taskqueue.New(b), Events: logs, Sessions: sessions.New(b, logs), Asks: semaphores.New(b), Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) },
		},
	})
	front := api.New(api.Config{
		Client: dispatcher.NewWithin(nc, b, stored, svc), Hub: hub, Runs: logs, Version: "0.0.0", Operations: table,
		Access: &api.Access{Authenticator: auth.Any{Keys: apikey.New(stored, time.Now)}},
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = hub.Run(ctx) })
	ended := make(chan error, 1)
	running.Go(func() { ended <- svc.Run(ctx) })
	server := httptest.NewServer(front)
	t.Cleanup(func() {
		front.Drain()
		server.Close()
		stop()
		running.Wait()
	})
	select {
	case <-svc.Ready():
	case err := <-ended:
		t.Fatal(err)
	}
	client, err := dispatcher.New(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	q := &quay{t: t, url: server.URL, nc: nc, client: client, headers: map[control.AccessRole][]string{}}
	for _, role := range slices.DeleteFunc(control.AccessRoles(), func(r control.AccessRole) bool { return r == control.RoleAuthor || r == control.RoleGranter }) { // of a tenant
		key, _, err := client.Keys().Create(t.Context(), dispatcher.KeySpec{Tenant: "acme", Roles: []control.AccessRole{role}, Name: "of " + string(role)})
		if err != nil {
			t.Fatal(err)
		}
		q.headers[role] = []string{"Authorization", "Bearer " + key}
	}
	return q
}

// over makes a request over HTTP as a role of acme.
func (q *quay) over(role control.AccessRole, method, path, body string, want int, into any) {
	q.t.Helper()
	(&hall{t: q.t, url: q.url}).do(method, path, body, want, into, q.headers[role]...)
}

// asked makes a request over NATS as it is.
func (q *quay) asked(subject, body string) *nats.Msg {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(q.t.Context(), patience)
	defer cancel()
	m, err := q.nc.RequestWithContext(ctx, subject, []byte(body))
	if err != nil {
		q.t.Fatal(err)
	}
	return m
}

// acts are the acted events of a tenant.
func (q *quay) acts(tenant, action string) []control.Acted {
	q.t.Helper()
	var all []control.Acted
	for e, err := range q.client.Runs().Recent(q.t.Context(), tenant, time.Now().Add(-time.Hour)) {
		if err != nil {
			q.t.Fatal(err)
		}
		var a control.Acted
		if e.Name() != control.EventActed {
			continue
		}
		if err := json.Unmarshal(e.Data, &a); err != nil {
			q.t.Fatal(err)
		}
		if a.Action == action {
			all = append(all, a)
		}
	}
	return all
}

// An operation is a value and a handler. A table with one more serves, guards, audits and describes it everywhere.
func TestANewOperationArrivesEverywhere(t *testing.T) {
	op, ships := berths(), registry()
	table := append(control.Operations(), op, ships)
	q := openQuay(t, table, request.Handlers{op.Subject: request.Read(takeBerth), ships.Subject: request.Read(register)})
	t.Run("over NATS", func(t *testing.T) { q.with(t).berthOverNATS() })
	t.Run("over HTTP", func(t *testing.T) { q.with(t).berthOverHTTP() })
	t.Run("by the client", func(t *testing.T) { q.with(t).berthByClient(&op) })
	t.Run("roles", func(t *testing.T) { q.with(t).berthByRole(table, &op) })
	t.Run("acted", func(t *testing.T) { q.with(t).berthIsTold() })
	t.Run("followed over HTTP", func(t *testing.T) { q.with(t).berthIsFollowed() })
	t.Run("documents", func(t *testing.T) { q.with(t).berthIsDescribed() })
	t.Run("all that a row can say", func(t *testing.T) { q.with(t).shipIsRegistered() })
	t.Run("Longshore's own", func(t *testing.T) {
		q := q.with(t)
		q.over(control.RoleOperator, "GET", "/v1/schedules", "", http.StatusOK, nil)
		if m := q.asked(control.SubjectSessions, `{}`); m.Header.Get("Nats-Service-Error") != "" {
			t.Errorf("%s", m.Data)
		}
	})
}

func (q *quay) with(t *testing.T) *quay {
	t.Helper()
	own := *q
	own.t = t
	return &own
}

func (q *quay) berthOverNATS() {
	want := `{"tenant":"acme","quay":"north","ship":"Ada","hours":3}`
	if m := q.asked("longshore.berths.take", `{"tenant":"acme","name":"north","ship":"Ada","hours":3}`); string(m.Data) != want {
		q.t.Errorf("on the subject of the fleet: %s %v", m.Data, m.Header)
	}
	if m := q.asked("longshore.t.acme.berths.take", `{"name":"north","ship":"Ada","hours":3}`); string(m.Data) != want {
		q.t.Errorf("on the subject of the tenant: %s %v", m.Data, m.Header)
	}
	for body, want := range map[string]messages.Problem{
		`{"name":"full","ship":"Bob"}`:                   {Status: http.StatusConflict, Code: messages.CodeConflict, Detail: "the quay is full: Bob has to wait"},
		`{"name":"north"}`:                               {Status: http.StatusBadRequest, Code: messages.CodeInvalidInput, Detail: "is missing", Field: "ship"},
		`{"name":"north","ship":"Ada","tenant":"other"}`: {Status: http.StatusForbidden, Code: messages.CodeForbidden, Detail: `this subject is for requests of tenant "acme" alone`},
		`{"name":"north","ship":"Ada","hours":"many"}`:   {Status: http.StatusBadRequest, Code: messages.CodeInvalidInput, Detail: "must be an integer, not a string", Field: "hours"},
		`{"name":"north","ship":"Ada","captain":"Bo"}`:   {Status: http.StatusBadRequest, Code: messages.CodeInvalidInput, Detail: "unknown field", Field: "captain"},
	} {
		m := q.asked("longshore.t.acme.berths.take", body)
		var p messages.Problem
		if err := json.Unmarshal(m.Data, &p); err != nil {
			q.t.Fatal(err)
		}
		if p.Status != want.Status || p.Code != want.Code || p.Detail != want.Detail || p.Field != want.Field || m.Header.Get("Nats-Service-Error") != want.Detail {
			q.t.Errorf("%s: %+v", body, p)
		}
	}
}

func (q *quay) berthOverHTTP() {
	const path = "/v1/quays/north/berths"
	var b Berth
	q.over(control.RoleOperator, "POST", path+"?hours=3", `{"ship":"Cem","length":80.5}`, http.StatusOK, &b)
	if want := (Berth{Tenant: "acme", Quay: "north", Ship: "Cem", Hours: 3}); b != want {
		q.t.Errorf("%+v, want %+v", b, want)
	}
	q.over(control.RoleOperator, "POST", path, `{"ship":"Cem"}`, http.StatusOK, &b)
	if b.Hours != 12 {
		q.t.Errorf("%+v: hours have a standard value", b)
	}
	for _, c := range []struct {
		path, body, field, detail string
		status                    int
	}{
		{path, `{"ship":7}`, "ship", "must be a string, not a number", http.StatusBadRequest},
		{path, `{"ship":"Cem","sail":true}`, "sail", "unknown field", http.StatusBadRequest},
		{path, `{}`, "ship", "is missing", http.StatusBadRequest},
		{path, ``, "body", "is missing", http.StatusBadRequest},
		{path + "?hours=49", `{"ship":"Cem"}`, "hours", "must be a number from 1 to 48", http.StatusBadRequest},
		{path + "?days=1", `{"ship":"Cem"}`, "days", "is no parameter of this request", http.StatusBadRequest},
		{"/v1/quays/n.rth/berths", `{"ship":"Cem"}`, "name", "must be 1 to 64 characters of A-Z a-z 0-9 _ -", http.StatusBadRequest},
		{"/v1/quays/full/berths", `{"ship":"Cem"}`, "", "the quay is full: Cem has to wait", http.StatusConflict},
	} {
		var p messages.Problem
		q.over(control.RoleOperator, "POST", c.path, c.body, c.status, &p)
		if p.Field != c.field || p.Detail != c.detail {
			q.t.Errorf("%s %s: %q %q", c.path, c.body, p.Field, p.Detail)
		}
	}
}

func (q *quay) berthByClient(op *control.Operation) {
	bound, err := dispatcher.NewTenant(q.t.Context(), q.nc, "acme")
	if err != nil {
		q.t.Fatal(err)
	}
	web, err := dispatcher.NewHTTP(q.url, strings.TrimPrefix(q.headers[control.RoleAdmin][1], "Bearer "))
	if err != nil {
		q.t.Fatal(err)
	}
	defer web.Close()
	for name, client := range map[string]*dispatcher.Client{"NATS": q.client, "a tenant's": bound, "HTTP": web} {
		var b Berth
		err := client.Call(q.t.Context(), op, BerthRequest{Tenant: "acme", Name: "south", Ship: "Dora", Hours: 5, Length: 12}, &b)
		if want := (Berth{Tenant: "acme", Quay: "south", Ship: "Dora", Hours: 5}); err != nil || b != want {
			q.t.Errorf("%s: %+v, %v", name, b, err)
		}
		err = client.Call(q.t.Context(), op, BerthRequest{Tenant: "acme", Name: "full", Ship: "Dora"}, &b)
		p, _ := errors.AsType[*messages.Problem](err)
		if !errors.Is(err, errQuayFull) || p == nil || p.Code != messages.CodeConflict {
			q.t.Errorf("%s: %v", name, err)
		}
		err = client.Call(q.t.Context(), op, BerthRequest{Tenant: "acme", Name: "south"}, &b)
		if f, ok := errors.AsType[*messages.FieldError](err); !ok || f.Field != "ship" {
			q.t.Errorf("%s: %v", name, err)
		}
	}
}

func (q *quay) berthByRole(table control.Table, op *control.Operation) {
	for _, role := range slices.DeleteFunc(control.AccessRoles(), func(r control.AccessRole) bool { return r == control.RoleAuthor || r == control.RoleGranter }) { // of a tenant
		want := http.StatusForbidden
		if slices.Contains(op.Needs.Roles(), role) {
			want = http.StatusOK
		}
		q.over(role, "POST", "/v1/quays/east/berths", `{"ship":"Eve"}`, want, nil)
	}
	resp := (&hall{t: q.t, url: q.url}).send("POST", "/v1/quays/east/berths", `{"ship":"Eve"}`)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		q.t.Errorf("without a key: %s", resp.Status)
	}
	for line := range strings.Lines(roleMatrix(api.OperationsOf(table))) {
		if strings.Contains(line, "`takeBerth`") != strings.HasPrefix(line, "| `operate` | operator, admin |") {
			q.t.Errorf("the role matrix: %s", line)
		}
	}
}

func (q *quay) berthIsTold() {
	q.over(control.RoleOperator, "POST", "/v1/quays/told/berths", `{"ship":"Flo"}`, http.StatusOK, nil)
	q.over(control.RoleViewer, "POST", "/v1/quays/told/berths", `{"ship":"Flo"}`, http.StatusForbidden, nil)
	q.asked("longshore.t.acme.berths.take", `{"name":"told","ship":"Flo"}`)
	q.over(control.RoleOperator, "POST", "/v1/quays/full/berths", `{"ship":"Flo"}`, http.StatusConflict, nil)
	var told []control.Acted
	for _, a := range q.acts("acme", "berths.take") {
		switch {
		case a.Target == "told":
			told = append(told, a)
		case a.Target == "full" || a.Outcome != control.ActDone:
			q.t.Errorf("%+v: it changed nothing", a)
		}
	}
	if len(told) != 2 || !strings.HasPrefix(told[0].Who, "key") || told[0].Remote != "127.0.0.1" || told[1].Who != "" {
		q.t.Errorf("%+v", told)
	}
}

// berthIsFollowed waits for the event of a new berth as a client over HTTP that follows the tenant.
func (q *quay) berthIsFollowed() {
	web, err := dispatcher.NewHTTP(q.url, strings.TrimPrefix(q.headers[control.RoleAdmin][1], "Bearer "))
	if err != nil {
		q.t.Fatal(err)
	}
	defer web.Close()
	ctx, cancel := context.WithTimeout(q.t.Context(), patience)
	defer cancel()
	for _, err := range web.Follow(ctx, "") {
		if f, ok := errors.AsType[*messages.FieldError](err); !ok || f.Field != "tenant" {
			q.t.Errorf("of all tenants: %v", err)
		}
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	asking.Go(func() { // again and again: it does not know when the client has begun
		again := time.NewTicker(100 * time.Millisecond)
		defer again.Stop()
		for ctx.Err() == nil {
			_, _ = q.nc.RequestWithContext(ctx, "longshore.t.acme.berths.take", []byte(`{"name":"followed","ship":"Gus"}`))
			select {
			case <-again.C:
			case <-ctx.Done():
			}
		}
	})
	for e, err := range web.Follow(ctx, "acme") {
		if err != nil {
			q.t.Fatal(err)
		}
		if e.Name() == control.EventActed && strings.Contains(string(e.Data), `"followed"`) {
			return
		}
	}
}

// Papers are those of a ship, which keep who wrote them.
type Papers struct {
	Name  string `json:"name,omitempty"`
	Flag  string `json:"flag,omitempty"`
	Clerk string `json:"clerk,omitempty"`
}

// Registration stores the papers of a ship.
type Registration struct {
	Tenant    string `json:"tenant,omitempty"`
	Papers    Papers `json:"papers"`
	IfEntry   uint64 `json:"ifEntry,omitempty"`
	Stateless bool   `json:"stateless,omitempty"`
}

// Registered is what came of a Registration, with what was asked for.
type Registered struct {
	Registration

	Name     string `json:"name"`
	Revision uint64 `json:"revision"`
}

// registry is an operation that uses what else a row can say: names that are any text, a whole body that keeps its author,
// revisions, a confirmation, what is of no tenant, and a place for what was made.
func registry() control.Operation {
	return control.Operation{
		Subject: "longshore.ships.register", Asks: Registration{}, Reply: Registered{}, Tenants: true,
		ID: "registerShip", Tag: "ships", Summary: "Register a ship", Needs: control.Operate, Method: "PUT", Path: "/v1/ships/{name}",
		Query: []control.Parameter{
			{Name: "ifEntry", Text: "Only if this is the newest.", Kind: "integer"},
			{Name: "stateless", Text: "Of no tenant.", Kind: "boolean", NoTenant: true},
			{Name: "sworn", Text: "Must be true.", Kind: "boolean", Must: "an oath is binding"},
		},
		Body: Papers{}, Unprefixed: "papers", Fields: map[string]string{"papers": "whole", "ifEntry": "query", "stateless": "query"},
		Status: http.StatusAccepted, Author: "clerk", AnyName: true, ETag: true, IfMatch: "ifEntry", Location: "/v1/ships/{name}/papers",
	}
}

func register(_ context.Context, r Registration) (any, error) {
	return Registered{r, r.Papers.Name, r.IfEntry + 1}, nil
}

func (q *quay) shipIsRegistered() {
	const path = "/v1/ships/HMS%20Ada"
	h := &hall{t: q.t, url: q.url}
	var r Registered
	own := slices.Concat(q.headers[control.RoleOperator], []string{control.HeaderIfMatch, `"41"`})
	header := h.do("PUT", path+"?sworn=true", `{"flag":"NL","clerk":"a liar"}`, http.StatusAccepted, &r, own...)
	if header.Get("Etag") != `"42"` || header.Get("Location") != "/v1/ships/HMS%20Ada/papers" {
		q.t.Errorf("%v", header)
	}
	if r.Tenant != "acme" || r.Papers.Name != "HMS Ada" || r.Papers.Flag != "NL" || !strings.HasPrefix(r.Papers.Clerk, "key") || r.IfEntry != 41 || r.Stateless {
		q.t.Errorf("%+v", r)
	}
	q.over(control.RoleOperator, "PUT", path+"?sworn=true&stateless=true", `{}`, http.StatusForbidden, nil) // one of a tenant
	key, _, err := q.client.Keys().Create(q.t.Context(), dispatcher.KeySpec{Tenant: control.AllTenants, Roles: []control.AccessRole{control.RoleOperator}, Name: "of all"})
	if err != nil {
		q.t.Fatal(err)
	}
	all := []string{"Authorization", "Bearer " + key}
	r = Registered{}
	h.do("PUT", path+"?sworn=true&stateless=true", `{}`, http.StatusAccepted, &r, all...)
	if !r.Stateless || r.Tenant != "" {
		q.t.Errorf("%+v: it is of a tenant", r)
	}
	for query, want := range map[string]string{
		"":                         "an oath is binding: give sworn=true",
		"?sworn=true&ifEntry=7":    "is not that of ifEntry",
		"?sworn=true&stateless=no": "must be true or false",
		"?sworn=true&ifEntry=x":    "must be a number",
	} {
		var p messages.Problem
		h.do("PUT", path+query, `{}`, http.StatusBadRequest, &p, own...)
		if p.Detail != want {
			q.t.Errorf("%s: %q", query, p.Detail)
		}
	}
	op := registry()
	for _, text := range []string{"", "?"} { // what the path cannot hold is escaped
		web, err := dispatcher.NewHTTP(q.url, key)
		if err != nil {
			q.t.Fatal(err)
		}
		defer web.Close()
		name := "S/V Bob" + text
		r = Registered{}
		if err := web.Call(q.t.Context(), &op, Registration{Tenant: "acme", Papers: Papers{Name: name}, IfEntry: 3}, &r); err != nil || r.Papers.Name != name || r.IfEntry != 3 {
			q.t.Errorf("%+v, %v", r, err)
		}
	}
}

func (q *quay) berthIsDescribed() {
	var open struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Tags        []string
			Parameters  []struct{ Name, In string }
			RequestBody struct{ Content map[string]any } `json:"requestBody"`
			Responses   map[string]struct{ Description string }
		}
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	get := func(path string, into any) {
		q.t.Helper()
		resp := (&hall{t: q.t, url: q.url}).send("GET", path, "")
		defer func() { _ = resp.Body.Close() }()
		data, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			q.t.Fatalf("%s: %s %v", path, resp.Status, err)
		}
		if err := json.Unmarshal(data, into); err != nil {
			q.t.Fatal(err)
		}
	}
	get("/openapi.json", &open)
	o := open.Paths["/v1/quays/{name}/berths"]["post"]
	var parameters []string
	for _, p := range o.Parameters {
		parameters = append(parameters, p.In+" "+p.Name)
	}
	if o.OperationID != "takeBerth" || !slices.Equal(parameters, []string{"path name", "query hours", "header Longshore-Tenant"}) ||
		o.RequestBody.Content["application/json"] == nil || o.Responses["409"].Description != "conflict: The quay is full." ||
		!slices.ContainsFunc(open.Paths["/v1/ships/{name}"]["put"].Parameters, func(p struct{ Name, In string }) bool { return p.Name == "If-Match" }) ||
		open.Components.Schemas["Ship"].Properties["length"] == nil || open.Components.Schemas["Berth"].Properties["quay"] == nil {
		q.t.Errorf("OpenAPI: %+v", o)
	}
	var async struct {
		Channels map[string]struct {
			Address  string
			Messages map[string]any
		}
		Operations map[string]struct{ Summary, Description string }
		Components struct{ Schemas map[string]any }
	}
	get("/asyncapi.json", &async)
	c, reply, takes := async.Channels["berths_take"], async.Channels["berths_take_reply"], async.Operations["berths_take"]
	if c.Address != "longshore.berths.take" || c.Messages["berth-request"] == nil || reply.Messages["berth"] == nil || reply.Messages["problem"] == nil ||
		takes.Summary != "Take a berth at a quay." || takes.Description != "409 conflict: The quay is full." || async.Components.Schemas["berth"] == nil {
		q.t.Errorf("AsyncAPI: %+v %+v %+v", c, reply, takes)
	}
	var schema struct {
		Defs map[string]struct {
			Properties           map[string]any
			AdditionalProperties *bool
		} `json:"$defs"`
	}
	get("/schemas/berth-request.json", &schema)
	if s := schema.Defs["BerthRequest"]; s.Properties["ship"] == nil || s.AdditionalProperties == nil || *s.AdditionalProperties {
		q.t.Errorf("the schema of the request: %+v", schema)
	}
}
