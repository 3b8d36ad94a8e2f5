package memory

import (
	"fmt"
	"maps"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/messages/strict"
)

// judge takes out of an item what may not be kept, as the tool remember does: of its text and of the name of its document. What it is found by has to
// be whole and stays readable, so that an item with a secret or personal data there is refused.
func (m *Memory) judge(rule Rule, it *memory.Item) error {
	for _, part := range []struct {
		field string
		text  *string
	}{{"text", &it.Text}, {"source.document", &it.Source.Document}} {
		if *part.text == "" {
			continue
		}
		kept, ok := rule(*part.text)
		if !ok {
			return &messages.FieldError{Field: part.field, Reason: "the rules of the fleet or of the tenant keep it out of memory"}
		}
		*part.text = m.cfg.Redact(kept)
	}
	found := map[string]string{"subject": it.Subject}
	for i, tag := range it.Tags {
		found[fmt.Sprintf("tags[%d]", i)] = tag
	}
	for name, value := range it.Fields {
		if text, ok := value.(string); ok {
			found["fields."+strict.Shown(name)] = text
		}
	}
	for _, field := range slices.Sorted(maps.Keys(found)) {
		if text := found[field]; text != "" {
			if kept, ok := rule(text); !ok || m.cfg.Redact(kept) != text {
				return &messages.FieldError{Field: field, Reason: "looks like a secret or personal data, which the rules keep out of memory: use an id instead"}
			}
		}
	}
	return nil
}
