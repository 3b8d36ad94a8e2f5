package contract

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/longshore-run/longshore/messages"
)

// timeForm is that of RFC 3339, as Go reads it.
const timeForm = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$`

// Refine adds to the schemas of a registry what its types cannot say: which of them are null, and of a task all that the
// decoder refuses whatever the other fields are.
func Refine(all map[string]*huma.Schema) {
	for _, s := range all {
		needed := map[string]bool{}
		for _, name := range s.Required {
			needed[name] = true
		}
		for name, p := range s.Properties {
			if !needed[name] { // it has omitempty: it is never written as null, and the decoder refuses null
				p.Nullable = false
			}
		}
	}
	if s := all["Task"]; s != nil {
		refineTask(s.Properties)
		s.Required = nil
		s.OneOf = []*huma.Schema{{Required: []string{"input"}}, {Required: []string{"description"}}}
	}
	if s := all["TaskFile"]; s != nil {
		s.Required = nil
		s.OneOf = []*huma.Schema{
			{Required: []string{"path", "text"}}, {Required: []string{"path", "data"}}, {Required: []string{"path", "hash"}}, {Required: []string{"git"}},
		}
	}
	if s := all["Plan"]; s != nil {
		s.Properties["steps"].Nullable = false
		s.Properties["requiredApprovals"].Items = &huma.Schema{Type: huma.TypeString, Pattern: nameForm}
	}
	if s := all["PlanStep"]; s != nil {
		s.Properties["args"] = freeObject("the tool's arguments")
		s.Properties["dependsOn"].Items = &huma.Schema{Type: huma.TypeString, Pattern: nameForm}
		s.Properties["requiredApprovals"].Items = &huma.Schema{Type: huma.TypeString, MinLength: new(1), MaxLength: new(256)}
	}
}

func refineTask(p map[string]*huma.Schema) {
	input := p["input"]
	if input == nil {
		return
	}
	p["description"] = &huma.Schema{OneOf: input.OneOf, Description: "another name of input"}
	p["context"] = freeObject("facts for the agent")
	p["outputSchema"] = freeObject("a JSON Schema of an object, without references")
	p["outputSchema"].Required = []string{"type"}
	p["outputSchema"].Properties = map[string]*huma.Schema{"type": {Type: huma.TypeString, Enum: []any{"object"}}}
	p["priority"].Enum = []any{"", string(messages.PriorityHigh), string(messages.PriorityNormal), string(messages.PriorityLow)}
	p["deadline"].Pattern, p["notBefore"].Pattern = timeForm, timeForm
	p["traceparent"].Pattern = "^$|^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"
	p["labels"].AdditionalProperties = &huma.Schema{Type: huma.TypeString, MaxLength: new(256)}
	p["labels"].Extensions = map[string]any{"propertyNames": map[string]any{"minLength": 1, "maxLength": 256}}
	// An embedded Webhook of its own, for that of a batch has other ends.
	p["webhook"] = &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"url"},
		Properties: map[string]*huma.Schema{
			"url": {Type: huma.TypeString, Pattern: "^[hH][tT][tT][pP][sS]?://[^/?#]", MaxLength: new(2048)},
			"events": {Type: huma.TypeArray, UniqueItems: true, Items: &huma.Schema{
				Type: huma.TypeString,
				Enum: []any{string(messages.StatusCompleted), string(messages.StatusFailed), string(messages.StatusCancelled)},
			}},
		},
	}
}

func freeObject(text string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Description: text, AdditionalProperties: true}
}
