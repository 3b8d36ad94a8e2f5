package api

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/dispatcher/contract"
)

// serveContract serves the AsyncAPI document and the JSON Schemas of what travels.
func (a *API) serveContract() error {
	async, err := contract.AsyncAPI(a.cfg.Version)
	if err != nil {
		return err
	}
	schemas, err := contract.Schemas()
	if err != nil {
		return err
	}
	if schemas["agent"], err = agents.Schema(); err != nil {
		return err
	}
	a.mux.HandleFunc("GET /asyncapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(async)
	})
	a.mux.HandleFunc("GET /schemas/{file}", func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutSuffix(r.PathValue("file"), ".json")
		body := schemas[strings.TrimSuffix(name, ".schema")]
		if !ok || body == nil {
			writeProblem(w, problemf(http.StatusNotFound, "not_found", "there is no such schema, such as task.json; GET /asyncapi.json has them all"))
			return
		}
		w.Header().Set("Content-Type", "application/schema+json")
		_, _ = w.Write(body)
	})
	return nil
}

// describeContract adds what serveContract serves to the OpenAPI document. Nobody needs a key for it.
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
