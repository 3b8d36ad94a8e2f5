package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
)

// Definition is a tool as its program defines it, in the metadata of its endpoint, and as the operator takes it, in a file.
type Definition struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	InputSchema json.RawMessage   `json:"inputSchema"`           // JSON Schema 2020-12 of an object that refuses unknown fields
	Effect      messages.Effect   `json:"effect"`                // of a call that is made twice
	Destructive bool              `json:"destructive,omitempty"` // a call waits for an approval, unless the agent says otherwise
	Timeout     messages.Duration `json:"timeout,omitzero"`      // of a call; default 30s

	same []byte // the definition without spacing and with its keys sorted
}

const maxDefinition = 64 << 10

// readDefinition reads the file of a definition.
func readDefinition(name string) (*Definition, error) {
	data, err := document.Read(name, maxDefinition)
	if err != nil {
		return nil, err
	}
	d := &Definition{}
	if err := strict.Decode(data, d); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(d.Description) > maxDescription {
		return nil, fmt.Errorf("%s: description: must not be longer than %d bytes", name, maxDescription)
	}
	if d.Timeout < 0 {
		return nil, fmt.Errorf("%s: timeout: must be more than zero", name)
	}
	if err := messages.CheckSchema(d.InputSchema); err != nil {
		return nil, fmt.Errorf("%s: %w", name, strict.Under("inputSchema", err))
	}
	if err := closed(d.InputSchema); err != nil {
		return nil, fmt.Errorf("%s: inputSchema: %w", name, err)
	}
	if d.Timeout == 0 {
		d.Timeout = messages.Duration(tools.DefaultTimeout)
	}
	d.same = strict.Canonical(data)
	return d, nil
}

const maxDescription = 8 << 10

// closed says whether a schema refuses unknown fields, so that no misspelt one is lost in silence.
func closed(schema json.RawMessage) error {
	var s struct {
		AdditionalProperties *bool `json:"additionalProperties"`
	}
	if err := json.Unmarshal(schema, &s); err != nil || s.AdditionalProperties == nil || *s.AdditionalProperties {
		return errors.New(`"additionalProperties" must be false`)
	}
	return nil
}

func (d *Definition) spec() messages.ToolSpec {
	return messages.ToolSpec{Name: d.Name, Description: d.Description, InputSchema: d.InputSchema, Effect: d.Effect, Destructive: d.Destructive}
}

// is reports whether a program defines the tool as the operator takes it.
func (d *Definition) is(served string) bool {
	return len(served) <= maxDefinition && bytes.Equal(strict.Canonical(json.RawMessage(served)), d.same)
}

// nameOf is the name in a definition that a program serves; empty if it has none.
func nameOf(served string) string {
	var d struct {
		Name string `json:"name"`
	}
	if len(served) > maxDefinition || json.Unmarshal([]byte(served), &d) != nil || !strict.ValidToken(d.Name) {
		return ""
	}
	return d.Name
}

var _ tools.Timeouter = (*tool)(nil)

// Timeout implements tools.Timeouter.
func (t *tool) Timeout() time.Duration { return t.timeout }
