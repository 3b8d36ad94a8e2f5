// Package evaluation runs a suite of tasks through the queue and judges what came of them. [Parse] reads a suite from
// YAML, [Run] runs it with a client, and the [Report] has what was expected of each run and not met, and the numbers.
package evaluation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/strict"
)

// APIVersion and Kind of a suite.
const (
	APIVersion = "longshore.run/v1"
	Kind       = "EvalSuite"
)

// Bounds of a suite.
const (
	MaxFile     = 4 << 20 // bytes
	maxCases    = 10_000
	maxRepeat   = 1000
	maxRuns     = 100_000
	maxParallel = 256
	maxExpected = 100 // expectations of one kind of a case
	maxTimeout  = 24 * time.Hour
)

// Defaults of a suite.
const (
	defaultParallel = 4
	defaultTimeout  = 5 * time.Minute
)

// Suite is what is run.
type Suite struct {
	Name        string            `json:"-"`
	Description string            `json:"-"`
	Agent       string            `json:"agent,omitempty"`     // of cases that name none; default "default"
	Threshold   *float64          `json:"threshold,omitempty"` // the share of runs that must pass, 0 to 1; default 1
	Repeat      int               `json:"repeat,omitempty"`    // how often each case is run; default 1
	Parallel    int               `json:"parallel,omitempty"`  // how many runs work at once; default 4
	Timeout     messages.Duration `json:"timeout,omitempty"`   // of one run; default 5m
	Cases       []Case            `json:"cases"`
}

// Case is a task and what is expected of it.
type Case struct {
	Name         string            `json:"name"`
	Agent        string            `json:"agent,omitempty"`
	Input        messages.Input    `json:"input"`
	Context      json.RawMessage   `json:"context,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Limits       *messages.Limits  `json:"limits,omitempty"`
	OutputSchema json.RawMessage   `json:"outputSchema,omitempty"`
	Repeat       int               `json:"repeat,omitempty"` // default: that of the suite
	Expect       Expect            `json:"expect"`
}

// Expect is what must be true of a run. What is absent is not looked at, but for the status.
type Expect struct {
	Status      messages.Status `json:"status,omitempty"` // default completed
	Code        messages.Code   `json:"code,omitempty"`   // of the error
	Equals      *string         `json:"equals,omitempty"` // white space at both ends does not count
	Contains    []string        `json:"contains,omitempty"`
	NotContains []string        `json:"notContains,omitempty"`
	JSON        []AtPath        `json:"json,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`   // JSON Schema of the result
	Tools       *[]string       `json:"tools,omitempty"`    // the calls, all of them in order
	MaxSteps    int             `json:"maxSteps,omitempty"` // 0: any
	MaxTokens   int64           `json:"maxTokens,omitempty"`
	MaxCost     *float64        `json:"maxCost,omitempty"` // in US dollars; an unknown cost does not meet it

	schema *jsonschema.Resolved
}

// AtPath is what must be at a place of a result that is JSON. One of the three is given.
type AtPath struct {
	Path     string          `json:"path"`               // such as $.items[0].name
	Equals   json.RawMessage `json:"equals,omitempty"`   // any JSON value
	Contains string          `json:"contains,omitempty"` // in a string there
	Exists   *bool           `json:"exists,omitempty"`   // whether there is anything

	steps []step
}

type file struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// Parse reads a suite, strictly, and fills its defaults. The error of a field is a *messages.FieldError whose field
// names its place, such as spec.cases[2].expect.schema; of a case it tells the name too.
func Parse(data []byte) (*Suite, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("larger than %d bytes", MaxFile)
	}
	yaml, err := document.Only(data, MaxFile)
	if err != nil {
		return nil, err
	}
	s, err := parse(yaml.JSON)
	return s, yaml.Locate(err)
}

func parse(asJSON []byte) (*Suite, error) {
	var doc file
	if err := strict.Decode(asJSON, &doc); err != nil {
		return nil, err
	}
	switch {
	case doc.APIVersion != APIVersion:
		return nil, &messages.FieldError{Field: "apiVersion", Reason: "must be " + APIVersion}
	case doc.Kind != Kind:
		return nil, &messages.FieldError{Field: "kind", Reason: "must be " + Kind}
	case !strict.ValidToken(doc.Metadata.Name):
		return nil, &messages.FieldError{Field: "metadata.name", Reason: "must be 1 to 64 characters of A-Z a-z 0-9 _ -"}
	case len(doc.Spec) == 0:
		return nil, &messages.FieldError{Field: "spec", Reason: "is missing"}
	}
	var s Suite
	if err := strict.Decode(doc.Spec, &s); err != nil {
		return nil, within("spec", err)
	}
	s.Name, s.Description = doc.Metadata.Name, doc.Metadata.Description
	return &s, within("spec", s.prepare())
}

// within puts the field of an error below another.
func within(place string, err error) error {
	field, ok := errors.AsType[*messages.FieldError](err)
	if !ok {
		return err
	}
	if field.Field == "body" || field.Field == "" {
		return &messages.FieldError{Field: place, Reason: field.Reason}
	}
	return &messages.FieldError{Field: place + "." + field.Field, Reason: field.Reason}
}

func outside(field string, n, least, most int) error {
	if n >= least && n <= most {
		return nil
	}
	return &messages.FieldError{Field: field, Reason: fmt.Sprintf("must be %d to %d", least, most)}
}

// prepare fills defaults and checks the suite.
func (s *Suite) prepare() error {
	one := 1.0
	if s.Threshold == nil {
		s.Threshold = &one
	}
	if s.Repeat == 0 {
		s.Repeat = 1
	}
	if s.Parallel == 0 {
		s.Parallel = defaultParallel
	}
	if s.Timeout == 0 {
		s.Timeout = messages.Duration(defaultTimeout)
	}
	if s.Agent == "" {
		s.Agent = messages.DefaultAgent
	}
	if t := *s.Threshold; t < 0 || t > 1 {
		return &messages.FieldError{Field: "threshold", Reason: "must be 0 to 1"}
	}
	if d := time.Duration(s.Timeout); d < 0 || d > maxTimeout {
		return &messages.FieldError{Field: "timeout", Reason: fmt.Sprintf("must be at most %s", maxTimeout)}
	}
	for _, err := range []error{
		outside("repeat", s.Repeat, 1, maxRepeat), outside("parallel", s.Parallel, 1, maxParallel), outside("cases", len(s.Cases), 1, maxCases),
	} {
		if err != nil {
			return err
		}
	}
	return s.prepareCases()
}

func (s *Suite) prepareCases() error {
	names, runs := map[string]int{}, 0
	for i := range s.Cases {
		c := &s.Cases[i]
		at := fmt.Sprintf("cases[%d]", i)
		if !strict.ValidToken(c.Name) {
			return &messages.FieldError{Field: at + ".name", Reason: "must be 1 to 64 characters of A-Z a-z 0-9 _ -"}
		}
		if first, twice := names[c.Name]; twice {
			return &messages.FieldError{Field: at + ".name", Reason: fmt.Sprintf("%q is the name of cases[%d] too", c.Name, first)}
		}
		names[c.Name] = i
		if c.Repeat == 0 {
			c.Repeat = s.Repeat
		}
		if err := c.check(s); err != nil {
			return within(fmt.Sprintf("%s (%s)", at, c.Name), err)
		}
		runs += c.Repeat
	}
	if runs > maxRuns {
		return &messages.FieldError{Field: "cases", Reason: fmt.Sprintf("are %d runs, more than %d", runs, maxRuns)}
	}
	return nil
}

func (c *Case) check(s *Suite) error {
	if err := outside("repeat", c.Repeat, 1, maxRepeat); err != nil {
		return err
	}
	if err := c.task(s).Validate(); err != nil {
		return err
	}
	return within("expect", c.Expect.prepare())
}

// Labels of the tasks of a suite.
const (
	LabelSuite = "evalSuite"
	LabelCase  = "evalCase"
)

// task is the task of a case, without an id.
func (c *Case) task(s *Suite) *messages.Task {
	t := &messages.Task{
		Agent: c.Agent, Input: c.Input, Context: c.Context, Limits: c.Limits, OutputSchema: c.OutputSchema,
		Labels: map[string]string{LabelSuite: s.Name, LabelCase: c.Name},
	}
	maps.Copy(t.Labels, c.Labels)
	if t.Agent == "" {
		t.Agent = s.Agent
	}
	t.SetDefaults()
	return t
}

func (e *Expect) prepare() error {
	if e.Status == "" {
		e.Status = messages.StatusCompleted
	}
	if !e.Status.Ended() {
		return &messages.FieldError{Field: "status", Reason: "must be completed, failed or cancelled"}
	}
	if e.MaxSteps < 0 || e.MaxTokens < 0 || e.MaxCost != nil && *e.MaxCost < 0 {
		return &messages.FieldError{Field: "maxSteps, maxTokens, maxCost", Reason: "must not be negative"}
	}
	for field, n := range map[string]int{"contains": len(e.Contains), "notContains": len(e.NotContains), "json": len(e.JSON)} {
		if err := outside(field, n, 0, maxExpected); err != nil {
			return err
		}
	}
	for field, texts := range map[string][]string{"contains": e.Contains, "notContains": e.NotContains} {
		for i, text := range texts {
			if text == "" {
				return &messages.FieldError{Field: fmt.Sprintf("%s[%d]", field, i), Reason: "is empty"}
			}
		}
	}
	for i := range e.JSON {
		if err := e.JSON[i].prepare(); err != nil {
			return within(fmt.Sprintf("json[%d]", i), err)
		}
	}
	return e.resolve()
}

func (e *Expect) resolve() error {
	if len(e.Schema) == 0 {
		return nil
	}
	bad := func(err error) error {
		return &messages.FieldError{Field: "schema", Reason: strict.Clip(err.Error(), 200)}
	}
	if v, err := decodeJSON(e.Schema); err != nil || refers(v) {
		return &messages.FieldError{Field: "schema", Reason: "must be a schema without references"}
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(e.Schema, &schema); err != nil {
		return bad(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return bad(err)
	}
	e.schema = resolved
	return nil
}

// refers reports whether a schema holds a reference. One that refers to itself in place would be followed forever.
func refers(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, in := range v {
			if k == "$ref" || k == "$dynamicRef" || k == "$recursiveRef" || refers(in) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, refers)
	}
	return false
}

func (a *AtPath) prepare() (err error) {
	if a.steps, err = parsePath(a.Path); err != nil {
		return err
	}
	given := 0
	for _, is := range []bool{len(a.Equals) > 0, a.Contains != "", a.Exists != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return &messages.FieldError{Field: "path", Reason: "give one of equals, contains and exists"}
	}
	return nil
}
