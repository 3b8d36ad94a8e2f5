package api

import (
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/dispatcher/contract"
	"github.com/longshore-run/longshore/messages/control"
)

// contracts are the documents that say what the dispatcher takes and gives.
type contracts struct {
	openapi, asyncapi []byte
	schemas           map[string][]byte // by name, such as task
}

func newContracts(version string, ops control.Table) (*contracts, error) {
	var c contracts
	var err error
	if c.openapi, err = document(operations(ops), version); err != nil {
		return nil, err
	}
	if c.asyncapi, err = contract.AsyncAPI(version, ops); err != nil {
		return nil, err
	}
	if c.schemas, err = contract.Schemas(ops); err != nil {
		return nil, err
	}
	c.schemas["agent"], err = agents.Schema()
	return &c, err
}

// serveContract serves the OpenAPI and the AsyncAPI document and the JSON Schemas of what travels. They are made when the
// first is asked for: that takes longer than the rest of a dispatcher's start, and few are ever asked.
func (a *API) serveContract() {
	made := sync.OnceValues(func() (*contracts, error) { return newContracts(a.cfg.Version, a.cfg.Operations) })
	serve := func(pattern, media string, body func(*contracts, *http.Request) []byte) {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			c, err := made()
			if err != nil {
				a.cfg.Log.ErrorContext(r.Context(), "describe the API", "err", err)
				writeProblem(w, problemOf(err))
				return
			}
			b := body(c, r)
			if b == nil {
				writeProblem(w, problemf(http.StatusNotFound, "not_found", "there is no such schema, such as task.json; GET /asyncapi.json has them all"))
				return
			}
			w.Header().Set("Content-Type", media)
			_, _ = w.Write(b)
		})
	}
	serve("GET /openapi.json", "application/json", func(c *contracts, _ *http.Request) []byte { return c.openapi })
	serve("GET /asyncapi.json", "application/json", func(c *contracts, _ *http.Request) []byte { return c.asyncapi })
	serve("GET /schemas/{file}", "application/schema+json", func(c *contracts, r *http.Request) []byte {
		name, ok := strings.CutSuffix(r.PathValue("file"), ".json")
		if !ok {
			return nil
		}
		return c.schemas[strings.TrimSuffix(name, ".schema")]
	})
}

// describeContract adds what serveContract serves to the OpenAPI document. It needs no key.
func describeContract(doc *huma.OpenAPI) {
	add := func(path, id, summary, media string, params ...*huma.Param) {
		doc.Paths[path] = &huma.PathItem{Get: &huma.Operation{
			OperationID: id, Summary: summary, Tags: []string{"contract"}, Parameters: params, Security: []map[string][]string{},
			Responses: map[string]*huma.Response{"200": {
				Description: http.StatusText(http.StatusOK), Content: map[string]*huma.MediaType{media: {Schema: &huma.Schema{Type: huma.TypeObject}}},
			}},
		}}
	}
	add("/asyncapi.json", "asyncAPI", "The AsyncAPI 3.1 document: what travels over NATS", "application/json")
	name := &huma.Schema{Type: huma.TypeString, Pattern: "^[a-z0-9-]+$"}
	add("/schemas/{name}.json", "schema", "A JSON Schema, such as task; the AsyncAPI document has them all", "application/schema+json",
		&huma.Param{Name: "name", In: "path", Required: true, Schema: name})
}
