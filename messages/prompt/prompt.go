// Package prompt renders prompts: [Render] and [Validate] for the catalogue that stores them, [Resolver] for the worker that begins a
// run with one.
//
// Templates and values are hostile. No engine reads a file, includes another template, calls a method or a function of
// a value, or prints anything but its result. A template is 64 KiB at most, the values 256 KiB, the result 256 KiB. A
// render runs on the caller's goroutine and starts none. Iterations are counted (see budget): a render fails after too many of
// them, or after a second. The engines do not escape anything: a prompt is not HTML.
package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// Limits of what goes in and comes out, in bytes.
const (
	maxOutput = 256 << 10
	maxVars   = 256 << 10
)

// bytesPerToken is a rule of thumb for English; other languages need more tokens.
const bytesPerToken = 4

// Vars are what is filled in. Values are those of JSON.
type Vars map[string]any

// ParseVars reads an object of values; absent is none. The error is a *messages.FieldError.
func ParseVars(field string, data json.RawMessage) (Vars, error) {
	if len(data) == 0 {
		return Vars{}, nil
	}
	if len(data) > maxVars {
		return nil, &messages.FieldError{Field: field, Reason: fmt.Sprintf("larger than %d bytes", maxVars)}
	}
	var free any // for what encoding/json lets pass
	if err := strict.Decode(data, &free); err != nil {
		return nil, &messages.FieldError{Field: field, Reason: err.Error()}
	}
	var vars Vars
	if err := json.Unmarshal(data, &vars); err != nil || vars == nil {
		return nil, &messages.FieldError{Field: field, Reason: "must be an object"}
	}
	for k, v := range vars {
		vars[k] = whole(v)
	}
	return vars, nil
}

// whole makes whole numbers integers, which the engines show without an exponent.
func whole(v any) any {
	switch v := v.(type) {
	case float64:
		if n := int(v); float64(n) == v && n < 1<<53 && n > -1<<53 {
			return n
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	}
	return v
}

// Options of a render.
type Options struct {
	// ThrowOnMissing makes it an error when a variable that the text names is not given. Else only requiredVars are
	// needed, and any other is empty. Names inside a loop or a section may belong to its items and do not count.
	ThrowOnMissing bool

	// Redact takes secrets out of the values that a text puts through redact: a filter of Liquid, a helper of
	// Handlebars. Without it these leave values as they are. It is called on Render's goroutine.
	Redact func(string) string
}

// Render fills in a prompt. The error is a *messages.FieldError: of "text" for what the template does wrong, of "vars"
// for what is missing.
func Render(p messages.Prompt, vars Vars, o Options) (text string, err error) {
	p.SetDefaults()
	t, err := parse(p)
	if err != nil {
		return "", err
	}
	needed := slices.Clone(p.RequiredVars)
	if o.ThrowOnMissing {
		needed = append(needed, t.named...)
	}
	if missing := absent(needed, vars); len(missing) > 0 {
		return "", &messages.FieldError{Field: "vars", Reason: "missing: " + strings.Join(missing, ", ")}
	}
	b := newBudget()
	b.redact = o.Redact
	err = guard(func() error { return t.render(vars, b) })
	switch {
	case err != nil:
		return "", broken(err)
	case b.spent != nil: // an engine may have passed over it
		return "", broken(b.spent)
	}
	return b.out.String(), nil
}

// Tokens estimates how many tokens of a model a text is.
func Tokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

// Policy reports whether a prompt may be stored.
type Policy func(messages.Prompt) error

// Validate tells all that is wrong with a prompt, and which variables its text names, sorted. The policy may be nil.
func Validate(p messages.Prompt, policy Policy) control.PromptVerdict {
	p.SetDefaults()
	var v control.PromptVerdict
	wrong := func(err error) {
		v.Errors, v.Problems = append(v.Errors, err.Error()), append(v.Problems, problem(err))
	}
	if err := p.Validate(); err != nil {
		wrong(err)
		return v
	}
	if t, err := parse(p); err != nil {
		wrong(err)
	} else {
		v.Vars = sorted(append(t.named, t.inner...))
		for i, name := range p.RequiredVars {
			if !slices.Contains(v.Vars, name) {
				wrong(&messages.FieldError{Field: fmt.Sprintf("requiredVars[%d]", i), Reason: "the text does not name " + name})
			}
		}
	}
	if policy != nil {
		if err := guard(func() error { return policy(p) }); err != nil {
			wrong(&messages.FieldError{Field: "policy", Reason: err.Error()})
		}
	}
	v.OK = len(v.Errors) == 0
	return v
}

// lineNamed is where an engine says that a text is wrong.
var lineNamed = regexp.MustCompile(`\bline (\d+)`)

// problem is an error with its field, and its line if it is about the text.
func problem(err error) control.TextProblem {
	field, ok := errors.AsType[*messages.FieldError](err)
	if !ok {
		return control.TextProblem{Reason: err.Error()}
	}
	p := control.TextProblem{Field: field.Field, Reason: field.Reason}
	if m := lineNamed.FindStringSubmatch(field.Reason); m != nil && field.Field == "text" {
		p.Line, _ = strconv.Atoi(m[1]) // too large a number stays 0
		p.Reason = strings.TrimPrefix(p.Reason, m[0]+": ")
	}
	return p
}

// template is a text that an engine has read.
type template struct {
	named  []string // variables outside of loops and sections
	inner  []string // names inside of them, which may be fields of an item
	render func(Vars, *budget) error
}

func parse(p messages.Prompt) (*template, error) {
	if len(p.Text) > messages.MaxPromptText {
		return nil, &messages.FieldError{Field: "text", Reason: fmt.Sprintf("larger than %d bytes", messages.MaxPromptText)}
	}
	read := map[string]func(string) (*template, error){
		messages.EngineFString: parseFString, messages.EngineMustache: parseMustache,
		messages.EngineHandlebars: parseHandlebars, messages.EngineLiquid: parseLiquid,
	}[p.Engine]
	if read == nil {
		return nil, &messages.FieldError{Field: "engine", Reason: "is not known"}
	}
	var t *template
	err := guard(func() (err error) {
		t, err = read(p.Text)
		return err
	})
	if err != nil {
		return nil, broken(err)
	}
	t.named, t.inner = sorted(t.named), sorted(t.inner)
	return t, nil
}

// guard turns a panic of an engine into an error.
func guard(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(error); ok {
				err = e
				return
			}
			err = fmt.Errorf("%v", r)
		}
	}()
	return do()
}

// broken is the error of a text, short and on one line.
func broken(err error) error {
	if field, ok := errors.AsType[*messages.FieldError](err); ok {
		return field
	}
	line := strings.Join(strings.Fields(err.Error()), " ")
	return &messages.FieldError{Field: "text", Reason: strict.Clip(line, 256)}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

func absent(names []string, vars Vars) []string {
	var out []string
	for _, n := range names {
		if _, ok := vars[n]; !ok {
			out = append(out, n)
		}
	}
	return sorted(out)
}

// root is the variable of a path such as user.name.
func root(path string) string {
	name, _, _ := strings.Cut(path, ".")
	return strings.TrimSpace(name)
}
