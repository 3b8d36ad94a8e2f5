package agents

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/longshore-run/longshore/messages"
)

// Schema is the JSON Schema of the file of an agent, generated from the Go types, for editors and for checks before
// anything is applied. Parse refuses more: whether a planner exists, or how long a text is, is not in the schema.
func Schema() ([]byte, error) {
	token := func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Pattern: "^[A-Za-z0-9_-]{1,64}$"}
	}
	spec, err := jsonschema.For[messages.Definition](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage]():   {}, // any JSON
		reflect.TypeFor[messages.Duration](): {Type: "string"},
	}})
	if err != nil {
		return nil, fmt.Errorf("describe an agent: %w", err)
	}
	for _, name := range []string{"name", "description", "revision"} {
		delete(spec.Properties, name)
	}
	spec.Required, spec.PropertyOrder = nil, nil
	doc := &jsonschema.Schema{
		Schema: "https://json-schema.org/draft/2020-12/schema",
		Title:  "Longshore agent",
		Type:   "object",
		Properties: map[string]*jsonschema.Schema{
			"apiVersion": {Const: new(any(APIVersion))},
			"kind":       {Const: new(any(Kind))},
			"metadata": {
				Type: "object", Required: []string{"name"},
				Properties:           map[string]*jsonschema.Schema{"name": token(), "description": {Type: "string"}},
				AdditionalProperties: none(),
			},
			"spec": spec,
		},
		Required:             []string{"apiVersion", "kind", "metadata"},
		AdditionalProperties: none(),
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("describe an agent: %w", err)
	}
	return append(out, '\n'), nil
}

// none allows no other properties.
func none() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }
