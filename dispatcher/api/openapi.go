package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longshore-run/longshore/dispatcher/contract"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// document is the OpenAPI 3.1 document of operations.
func document(ops []operation, version string) ([]byte, error) {
	schemas := contract.NewRegistry("#/components/schemas/")
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Longshore", Version: version,
			Description: "Submit tasks to a fleet of agents, follow them, and fetch their results. Errors are RFC 9457 problem details.",
		},
		Paths: map[string]*huma.PathItem{}, Components: &huma.Components{
			Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{bearerScheme: {
				Type: "http", Scheme: "bearer", Description: "An API key or a JWT. A dispatcher with LONGSHORE_AUTH=off needs neither.",
			}},
		},
	}
	problem := schemas.Schema(reflect.TypeFor[messages.Problem](), true, "Problem")
	for _, op := range ops {
		item := doc.Paths[op.path]
		if item == nil {
			item = &huma.PathItem{}
			doc.Paths[op.path] = item
		}
		wrong := problem
		if op.problem != nil {
			wrong = schemas.Schema(reflect.TypeOf(op.problem(&messages.Problem{})), true, "")
		}
		o := describe(&op, schemas, wrong)
		switch op.method {
		case http.MethodGet:
			item.Get = o
		case http.MethodPost:
			item.Post = o
		case http.MethodPut:
			item.Put = o
		case http.MethodDelete:
			item.Delete = o
		default:
			return nil, fmt.Errorf("describe %s: no place for method %s", op.id, op.method)
		}
	}
	contract.Refine(schemas.Map())
	doc.Servers = []*huma.Server{{URL: "/", Description: "The dispatcher that serves this document."}}
	describeContract(doc)
	body, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	return append(body, '\n'), nil
}

// bearerScheme is the name of the bearer security scheme.
const bearerScheme = "bearer"

func describe(op *operation, schemas huma.Registry, problem *huma.Schema) *huma.Operation {
	o := &huma.Operation{
		OperationID: op.id, Summary: op.summary, Description: strings.TrimSpace(op.text + " Needs " + needText(op.needs) + "."), Tags: []string{op.tag},
		Security: []map[string][]string{{bearerScheme: {}}},
		Responses: map[string]*huma.Response{"default": {
			Description: "The request failed",
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: problem}},
		}},
	}
	for part := range strings.SplitSeq(op.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			token := &huma.Schema{Type: huma.TypeString, Pattern: "^[A-Za-z0-9_-]{1,64}$"}
			o.Parameters = append(o.Parameters, &huma.Param{Name: strings.TrimSuffix(name, "}"), In: "path", Required: true, Schema: token})
		}
	}
	for _, p := range op.query {
		o.Parameters = append(o.Parameters, describeParameter(p, "query"))
	}
	tenant := control.Parameter{Name: control.HeaderTenant, Text: "Tenant of the request. Default: that of the caller; for keys of all tenants, and without authentication, the tenant `default`."}
	for _, p := range append([]control.Parameter{tenant}, op.headers...) {
		o.Parameters = append(o.Parameters, describeParameter(p, "header"))
	}
	if op.body != nil {
		t := reflect.TypeOf(op.body)
		o.RequestBody = &huma.RequestBody{Required: !op.optional, Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemas.Schema(t, true, t.Name())},
		}}
	}
	if op.takes != "" {
		o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{op.takes: {Schema: &huma.Schema{Type: huma.TypeString}}}}
	}
	t := reflect.TypeOf(op.reply)
	media := op.media
	if media == "" {
		media = "application/json"
	}
	content := map[string]*huma.MediaType{media: {Schema: schemas.Schema(t, true, t.Name())}}
	if op.stream != nil && op.answer != nil {
		content["text/event-stream"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	}
	for _, status := range []int{max(op.status, http.StatusOK), op.also} {
		if status != 0 {
			o.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: content}
		}
	}
	for _, f := range op.failures {
		if f.Text == "" {
			continue
		}
		text, status := string(f.Code)+": "+f.Text, strconv.Itoa(f.Status)
		if also := o.Responses[status]; also != nil {
			text = also.Description + " " + text
		}
		o.Responses[status] = &huma.Response{Description: text, Content: o.Responses["default"].Content}
	}
	return o
}

func describeParameter(p control.Parameter, in string) *huma.Param {
	s := &huma.Schema{Type: huma.TypeString}
	switch p.Kind {
	case "integer", "boolean":
		s.Type = p.Kind
	case "date-time", "duration":
		s.Format = p.Kind
		if p.Kind == "duration" {
			s.Format = "" // ISO 8601 has another form
		}
	}
	if p.Many {
		s = &huma.Schema{Type: huma.TypeArray, Items: s}
	}
	out := &huma.Param{Name: p.Name, In: in, Description: p.Text, Schema: s}
	if p.Example != "" {
		out.Example = p.Example
		if p.Many {
			out.Example = strings.Split(p.Example, ",")
		}
	}
	return out
}
