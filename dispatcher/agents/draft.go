package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/document"
)

// Draft is a definition while a person writes it: a file as Parse takes it, of one agent, or the definition alone, as the HTTP API takes
// it. Both may be YAML or JSON.
type Draft struct {
	Agent messages.Definition

	doc    *document.YAML // nil: the text is not YAML
	framed bool           // it is a file
}

// ReadDraft reads a draft as strictly as Parse reads a file. It returns a draft with an error too: Problem says where that stands.
func ReadDraft(text string) (*Draft, error) {
	d := &Draft{}
	var err error
	if d.doc, err = document.Only([]byte(text), maxFile); err != nil {
		return d, err
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(d.doc.JSON, &top) != nil || top == nil {
		return d, fmt.Errorf("not a definition: it must have fields, such as name (line %d)", d.doc.Line)
	}
	read := flat
	if _, d.framed = top["apiVersion"]; !d.framed {
		_, d.framed = top["spec"]
	}
	if d.framed {
		read = parse
	}
	d.Agent, err = read(d.doc.JSON)
	return d, err
}

// Problem is an error about the draft, with its line. Fields are those of a definition, or of the file, as ReadDraft names them.
func (d *Draft) Problem(err error) control.TextProblem {
	if wrong, ok := errors.AsType[*document.SyntaxError](err); ok {
		return control.TextProblem{Line: wrong.Line, Reason: strings.TrimPrefix(wrong.Reason, fmt.Sprintf("line %d: ", wrong.Line))}
	}
	field, ok := errors.AsType[*messages.FieldError](err)
	if !ok {
		return control.TextProblem{Reason: err.Error()}
	}
	return control.TextProblem{Line: d.doc.LineOf(field.Field), Field: field.Field, Reason: field.Reason}
}

// Within names a field of the definition as the draft has it.
func (d *Draft) Within(err error) error {
	if !d.framed {
		return err
	}
	return within(err)
}
