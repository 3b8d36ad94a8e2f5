package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Func makes a Tool of a function whose arguments are a struct. A spec without a schema gets the one of In: fields
// without omitempty are required, the tag jsonschema describes a field, and unknown fields are refused. A schema of
// its own must refuse unknown fields too, so that no misspelt one is lost in silence.
func Func[In any](spec messages.ToolSpec, f func(context.Context, Call, In) (Result, error)) (Tool, error) {
	return FuncOn(spec, nil, f)
}

// FuncOn is Func of a tool that says what its calls are about: see Resourcer.
func FuncOn[In any](spec messages.ToolSpec, key func(In) string, f func(context.Context, Call, In) (Result, error)) (Tool, error) {
	var err error
	if len(spec.InputSchema) == 0 {
		if spec.InputSchema, err = infer[In](); err != nil {
			return nil, fmt.Errorf("tool %q: infer input schema: %w", spec.Name, err)
		}
	}
	s, err := newSchema(spec.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("tool %q: input schema: %w", spec.Name, err)
	}
	if !forbids(s.root.AdditionalProperties) {
		return nil, fmt.Errorf(`tool %q: input schema: "additionalProperties" must be false`, spec.Name)
	}
	return function[In]{spec, key, f}, nil
}

func infer[In any]() (json.RawMessage, error) {
	t := reflect.TypeFor[In]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v is not a struct", t)
	}
	s, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, err
	}
	if len(s.Properties) == 0 {
		// Some model providers refuse an object schema without the word.
		return json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`), nil
	}
	return json.Marshal(s)
}

type function[In any] struct {
	spec messages.ToolSpec
	key  func(In) string
	f    func(context.Context, Call, In) (Result, error)
}

func (t function[In]) Spec() messages.ToolSpec { return t.spec }

func (t function[In]) Call(ctx context.Context, c Call) (Result, error) {
	var in In
	if err := json.Unmarshal(c.Arguments, &in); err != nil {
		// They fit the schema, which knows nothing of the range of an int.
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return *invalid(fmt.Sprintf("Invalid arguments for %s: %q must not be %s.", t.spec.Name, e.Field, e.Value)), nil
		}
		return *invalid(fmt.Sprintf("Invalid arguments for %s: %s.", t.spec.Name, strict.Clip(err.Error(), maxExpected))), nil
	}
	return t.f(ctx, c, in)
}

// Resource implements Resourcer.
func (t function[In]) Resource(args json.RawMessage) string {
	var in In
	if t.key == nil || json.Unmarshal(args, &in) != nil {
		return ""
	}
	return t.key(in)
}
