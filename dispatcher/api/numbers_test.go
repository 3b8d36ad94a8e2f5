package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/dispatcher/contract"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// extremes are numbers at the edges of the types that hold them.
func extremes() []string {
	return []string{
		"-1", "0", "2147483648", "9223372036854775806", "9223372036854775807", "9223372036854775808", "18446744073709551614", "18446744073709551615",
		"18446744073709551616", "1e19", "0.5",
	}
}

// Numbers at the edges are served or refused over HTTP, for a run that exists, and never an internal error.
func TestExtremeNumbersOverHTTP(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"run","input":"hi"}`, 200, nil)
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	h.do("GET", "/openapi.json", "", 200, &document)
	fired := 0
	for path, methods := range document.Paths {
		get, ok := methods["get"]
		if !ok {
			continue
		}
		for _, p := range get.Parameters {
			for _, n := range extremes() {
				to := path
				if p.In == "path" {
					to = strings.ReplaceAll(to, "{"+p.Name+"}", n)
				}
				for _, rest := range []string{"run", "default"} { // of a run, of an agent
					if p.In == "query" || strings.Contains(to, "{") || rest == "run" {
						at := replaceNames(to, rest)
						if p.In == "query" {
							at += "?" + p.Name + "=" + n
						}
						fire(t, http.DefaultClient, h.url, shot{method: "GET", path: at})
						fired++
					}
				}
			}
		}
	}
	if fired < 500 {
		t.Errorf("%d requests are too few", fired)
	}
	// Of what a caller continues after, no number is too large to be refused by its name.
	for _, path := range []string{"/v1/tasks/run/log", "/v1/dead-letters"} {
		var p messages.Problem
		h.do("GET", path+"?after=18446744073709551615", "", 400, &p)
		if p.Field != "after" || p.Retryable {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

// replaceNames fills each place of a path.
func replaceNames(path, with string) string {
	for {
		from := strings.IndexByte(path, '{')
		if from < 0 {
			return path
		}
		path = path[:from] + with + path[from+strings.IndexByte(path[from:], '}')+1:]
	}
}

// The same in the fields of requests over NATS: in every whole number of every request that the contract names.
func TestExtremeNumbersOverNATS(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"run","input":"hi"}`, 200, nil)
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	fields := map[string]any{"tenant": "default", "id": "run", "name": "default", "kind": "agent", "reason": "x", "by": "x", "input": "x"}
	fired := 0
	for subject, schema := range requestSchemas(t) {
		for field, number := range schema {
			if !number {
				continue
			}
			for _, n := range extremes() {
				body := map[string]any{}
				for name := range schema {
					if v, ok := fields[name]; ok {
						body[name] = v
					}
				}
				body[field] = json.Number(n)
				data, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				m, err := nc.Request(subject, data, patience)
				if err != nil {
					t.Errorf("%s %s: %v", subject, data, err)
					continue
				}
				var p messages.Problem
				if err := json.Unmarshal(m.Data, &p); err == nil && p.Code == messages.CodeInternal {
					t.Errorf("%s %s: %s", subject, data, m.Data)
				}
				fired++
			}
		}
	}
	if fired < 200 {
		t.Errorf("%d requests are too few", fired)
	}
	for _, subject := range []string{control.SubjectLog, control.SubjectEvents, control.SubjectDeadList, control.SubjectQueued} {
		var p messages.Problem
		m, err := nc.Request(subject, []byte(`{"tenant":"default","id":"run","after":18446744073709551615}`), patience)
		if subject == control.SubjectDeadList || subject == control.SubjectQueued {
			m, err = nc.Request(subject, []byte(`{"tenant":"default","after":18446744073709551615}`), patience)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(m.Data, &p); err != nil || p.Code != messages.CodeInvalidInput || p.Field != "after" || p.Retryable {
			t.Errorf("%s: %s", subject, m.Data)
		}
	}
}

// reference is one of a JSON document.
type reference struct {
	To string `json:"$ref"`
}

func (r reference) last() string { return r.To[strings.LastIndexByte(r.To, '/')+1:] }

// requestSchemas are the fields of each request over NATS, and whether they are whole numbers.
func requestSchemas(t *testing.T) map[string]map[string]bool {
	t.Helper()
	raw, err := contract.AsyncAPI("0", control.Operations())
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Channels map[string]struct {
			Address  string               `json:"address"`
			Messages map[string]reference `json:"messages"`
		} `json:"channels"`
		Components struct {
			Schemas map[string]struct {
				reference

				Defs map[string]struct {
					Properties map[string]struct {
						Type any `json:"type"`
					} `json:"properties"`
				} `json:"$defs"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]bool{}
	for _, channel := range document.Channels {
		if !strings.HasPrefix(channel.Address, "longshore.") || strings.Contains(channel.Address, "{") {
			continue
		}
		for _, message := range channel.Messages {
			schema := document.Components.Schemas[message.last()]
			numbers := map[string]bool{}
			for field, is := range schema.Defs[schema.last()].Properties {
				kind, _ := json.Marshal(is.Type)
				numbers[field] = strings.Contains(string(kind), "integer")
			}
			found[channel.Address] = numbers
		}
	}
	if len(found) < 50 || !slices.Contains(slices.Collect(maps.Keys(found[control.SubjectLog])), "after") {
		t.Fatalf("requests of the contract: %v", found)
	}
	return found
}

// A task that fits the request and not a message of the server, for that is in another notation, is its sender's fault.
func TestTaskThatIsTooLargeOnceEncoded(t *testing.T) {
	h := open(t)
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	client, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false) // as most clients encode
	input := strings.Repeat("<", 1000<<10)
	if err := enc.Encode(map[string]string{"id": "angles", "input": input}); err != nil {
		t.Fatal(err)
	}
	check := func(way string, p messages.Problem) {
		t.Helper()
		if p.Status != 400 || p.Code != messages.CodeInvalidInput || p.Field != "body" || p.Retryable || !strings.Contains(p.Detail, "max_payload") {
			t.Errorf("%s: %+v", way, p)
		}
	}
	var p messages.Problem
	h.do("POST", "/v1/tasks", raw.String(), 400, &p)
	check("HTTP", p)
	m, err := nc.Request(control.SubjectSubmit, raw.Bytes(), patience)
	if err != nil {
		t.Fatal(err)
	}
	p = messages.Problem{}
	if err := json.Unmarshal(m.Data, &p); err != nil {
		t.Fatal(err)
	}
	check("NATS", p)
	_, err = client.Submit(t.Context(), messages.Task{ID: "angles", Input: messages.TextInput(input)})
	if field, ok := errors.AsType[*messages.FieldError](err); !ok || field.Field != "body" {
		t.Errorf("the Go client: %v", err)
	}
	h.do("POST", "/v1/tasks", `{"input":"`+strings.Repeat(`\u0001`, 1000<<10)+`"}`, 413, &p) // larger than a request may be
	if p.Retryable {
		t.Errorf("%+v", p)
	}
	h.do("GET", "/v1/tasks/angles", "", 404, nil)
}
