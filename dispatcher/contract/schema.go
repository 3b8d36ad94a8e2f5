package contract

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

const dialect = "https://json-schema.org/draft/2020-12/schema"

// nameForm is that of a tenant, an id or a name.
const nameForm = "^[A-Za-z0-9_-]{1,64}$"

// NewRegistry describes Go types as they are on the wire; what one needs of others is put below a prefix.
func NewRegistry(prefix string) huma.Registry {
	r := huma.NewMapRegistry(prefix, huma.DefaultSchemaNamer)
	r.RegisterTypeAlias(reflect.TypeFor[json.RawMessage](), reflect.TypeFor[anyJSON]())
	r.RegisterTypeAlias(reflect.TypeFor[messages.Input](), reflect.TypeFor[input]())
	r.RegisterTypeAlias(reflect.TypeFor[messages.Duration](), reflect.TypeFor[duration]())
	return r
}

// anyJSON is described as any JSON value.
type anyJSON struct{}

// Schema implements huma.SchemaProvider.
func (anyJSON) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

// input is described as what messages.Input reads.
type input struct{}

// Schema implements huma.SchemaProvider.
func (input) Schema(huma.Registry) *huma.Schema {
	most := messages.MaxInput
	text := func(least int) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, MinLength: new(least), MaxLength: &most}
	}
	bytes := &huma.Schema{Type: huma.TypeString, ContentEncoding: "base64"}
	block := &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, MaxProperties: new(1), Properties: map[string]*huma.Schema{
			"text": text(0),
			"image": {
				Type: huma.TypeObject, AdditionalProperties: false, Description: "either data with its mediaType, or an https url that the provider fetches",
				Properties: map[string]*huma.Schema{
					"mediaType": {Type: huma.TypeString, Enum: []any{"image/png", "image/jpeg", "image/gif", "image/webp"}},
					"data":      bytes, "url": {Type: huma.TypeString, Pattern: "^https://"},
				},
			},
			"file": {
				Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"mediaType", "data"},
				Properties: map[string]*huma.Schema{
					"name": {Type: huma.TypeString, MaxLength: new(128)}, "mediaType": {Type: huma.TypeString, Enum: []any{messages.TypePDF}}, "data": bytes,
				},
			},
		},
	}
	said := &huma.Schema{Type: huma.TypeObject, Required: []string{"text"}, Properties: map[string]*huma.Schema{"text": text(1)}}
	return &huma.Schema{OneOf: []*huma.Schema{text(1), {
		Type: huma.TypeArray, Items: block, Extensions: map[string]any{"contains": said},
	}}}
}

// duration is described as what messages.Duration reads.
type duration struct{}

// Schema implements huma.SchemaProvider.
func (duration) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: `such as "90s" or "1h30m"`}
}

// Schemas are all JSON Schemas by name, each complete in itself: of what a table of operations asks for and replies, of
// tasks, results, events and problems.
func Schemas(ops control.Table) (map[string][]byte, error) {
	all := map[string][]byte{}
	described, err := types(ops)
	if err != nil {
		return nil, err
	}
	for _, t := range described {
		body, err := encode(standalone(t))
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", t.name, err)
		}
		all[t.name] = body
	}
	for _, e := range append(events(), happenings()...) {
		body, err := encode(eventSchema(e))
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", e.name, err)
		}
		all[schemaOf(e)] = body
	}
	return all, nil
}

func schemaOf(e event) string { return "event-" + strings.ReplaceAll(e.name, "_", "-") }

func encode(v any) ([]byte, error) {
	body, err := json.MarshalIndent(v, "", "  ")
	return append(body, '\n'), err
}

// standalone is the schema of a type with all that it needs.
func standalone(t named) map[string]any {
	r := NewRegistry("#/$defs/")
	top := r.Schema(t.of, true, t.of.Name())
	return map[string]any{"$schema": dialect, "title": "Longshore " + t.name, "$ref": top.Ref, "$defs": defs(r, t.strict)}
}

// eventSchema is the schema of a whole event: CloudEvents 1.0 with its data.
func eventSchema(e event) map[string]any {
	r := NewRegistry("#/$defs/")
	body := r.Schema(e.data, true, e.data.Name())
	schema := envelope(e, body.Ref)
	schema["$schema"], schema["$defs"] = dialect, defs(r, false)
	return schema
}

func envelope(e event, data string) map[string]any {
	text := map[string]any{"type": "string"}
	return map[string]any{
		"title": "Longshore event " + e.name, "description": e.text, "type": "object",
		"required": []string{"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "sequence", "data"},
		"properties": map[string]any{
			"specversion": map[string]any{"const": "1.0"}, "id": text, "source": text, "subject": text,
			"type":            map[string]any{"const": "longshore." + e.name + ".v1"},
			"time":            map[string]any{"type": "string", "format": "date-time"},
			"datacontenttype": map[string]any{"const": "application/json"},
			"sequence":        map[string]any{"type": "string", "pattern": "^[0-9]+$", "description": "the run's running number, from 1 without gaps"},
			"traceparent":     text,
			"data":            map[string]any{"$ref": data},
		},
	}
}

// defs are the schemas of a registry. What Longshore sends may have more properties than those it has today.
func defs(r huma.Registry, strict bool) map[string]*huma.Schema {
	all := r.Map()
	Refine(all)
	for _, s := range all {
		if closed, is := s.AdditionalProperties.(bool); is && !closed && !strict {
			s.AdditionalProperties = nil
		}
	}
	return all
}
