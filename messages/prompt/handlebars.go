package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/mailgun/raymond/v2"
	"github.com/mailgun/raymond/v2/ast"
	"github.com/mailgun/raymond/v2/parser"
)

// maxFill bounds how much a template of many tags may make of large values before the library returns it, in bytes.
const maxFill = 32 << 20

// parseHandlebars reads a template that uses nothing but values and the helpers if, unless, each, with, lookup and redact.
// The library has no writer and no limits, so loops go through our own each, and the size of all that stands outside
// of loops is bounded before.
func parseHandlebars(text string) (*template, error) {
	if err := checkHandlebars(text); err != nil {
		return nil, err
	}
	program, err := parser.Parse(text)
	if err != nil {
		return nil, err
	}
	t := &template{}
	w := &handlebars{template: t}
	if err := w.program(program, false, nil); err != nil {
		return nil, err
	}
	t.render = func(vars Vars, b *budget) error {
		size, err := json.Marshal(vars)
		if err != nil {
			return fmt.Errorf("values: %w", err)
		}
		if w.tags*len(size) > maxFill {
			return fmt.Errorf("has too many tags, %d, for values of %d bytes", w.tags, len(size))
		}
		tpl, err := raymond.Parse(text) // not shared: the helpers are of this render
		if err != nil {
			return err
		}
		tpl.RegisterHelpers(map[string]any{"each": eachOf(b), "redact": redactOf(b)})
		out, err := tpl.Exec(unescaped(map[string]any(vars)))
		if err != nil {
			return err
		}
		_, err = io.WriteString(b, out)
		return err
	}
	return t, nil
}

// unescaped is a value whose texts are not taken for HTML.
func unescaped(v any) any {
	switch v := v.(type) {
	case string:
		return raymond.SafeString(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = unescaped(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = unescaped(e)
		}
		return out
	default:
		return v
	}
}

// eachOf is the helper each, counted.
func eachOf(b *budget) func(any, *raymond.Options) raymond.SafeString {
	return func(over any, o *raymond.Options) raymond.SafeString {
		var out []byte
		turn := func(i, n int, key string, item any) {
			if err := b.turn(); err != nil {
				panic(err)
			}
			frame := o.NewDataFrame()
			frame.Set("index", i)
			frame.Set("first", i == 0)
			frame.Set("last", i == n-1)
			frame.Set("key", key)
			text := o.FnCtxData(item, frame)
			if err := b.use(len(text)); err != nil {
				panic(err)
			}
			if out = append(out, text...); len(out) > maxOutput {
				panic(errOutput)
			}
		}
		switch over := over.(type) {
		case []any:
			for i, item := range over {
				turn(i, len(over), "", item)
			}
		case map[string]any:
			for i, key := range slices.Sorted(maps.Keys(over)) {
				turn(i, len(over), key, over[key])
			}
		}
		if len(out) == 0 {
			return raymond.SafeString(o.Inverse())
		}
		return raymond.SafeString(out)
	}
}

// redactOf is the helper redact, counted.
func redactOf(b *budget) func(any) raymond.SafeString {
	return func(v any) raymond.SafeString {
		text, err := b.redacted(raymond.Str(v))
		if err != nil {
			panic(err)
		}
		return raymond.SafeString(text)
	}
}

// handlebars looks through a template.
type handlebars struct {
	*template

	tags int // that print, or decide what is printed
}

func (w *handlebars) program(p *ast.Program, inner bool, bound []string) error {
	if p == nil {
		return nil
	}
	for _, node := range p.Body {
		var err error
		switch n := node.(type) {
		case *ast.ContentStatement, *ast.CommentStatement:
		case *ast.MustacheStatement:
			err = w.expression(n.Expression, "", inner, bound)
		case *ast.BlockStatement:
			err = w.block(n, inner, bound)
		default: // partials
			err = errFile
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *handlebars) block(n *ast.BlockStatement, inner bool, bound []string) error {
	helper := n.Expression.HelperName()
	switch {
	case len(n.Expression.Params) != 1:
		return fmt.Errorf("a block must be if, unless, each or with, of one value, not %s", n.Expression.Canonical())
	case helper != "if" && helper != "unless" && helper != "each" && helper != "with":
		return fmt.Errorf("a block must be if, unless, each or with, not %s", n.Expression.Canonical())
	}
	if err := w.expression(n.Expression, helper, inner, bound); err != nil {
		return err
	}
	items := inner || helper == "each" || helper == "with"
	within := bound
	if n.Program != nil {
		within = append(slices.Clone(bound), n.Program.BlockParams...)
	}
	return errors.Join(w.program(n.Program, items, within), w.program(n.Inverse, inner, bound))
}

// expression is a value, or a call of a helper that may be called there.
func (w *handlebars) expression(e *ast.Expression, helper string, inner bool, bound []string) error {
	w.tags++
	if helper == "" && (len(e.Params) > 0 || e.Hash != nil) {
		switch helper = e.HelperName(); {
		case helper != "lookup" && helper != "redact":
			return fmt.Errorf("%s is not a helper that a prompt may call", e.Canonical())
		case helper == "redact" && (len(e.Params) != 1 || e.Hash != nil):
			return errors.New("redact takes one value")
		}
	}
	if helper == "" {
		if name := e.HelperName(); name == "log" || name == "lookup" || name == "redact" || name == "each" || name == "if" || name == "unless" || name == "with" ||
			name == "equal" || name == "pluralize" || name == "ifGt" || name == "ifLt" || name == "ifEq" || name == "ifMatchesRegexStr" {
			return fmt.Errorf("%s is a helper, not a value", name)
		}
		return w.value(e.Path, inner, bound)
	}
	for _, p := range e.Params {
		if err := w.value(p, inner, bound); err != nil {
			return err
		}
	}
	return nil
}

func (w *handlebars) value(node ast.Node, inner bool, bound []string) error {
	switch n := node.(type) {
	case *ast.SubExpression:
		return w.expression(n.Expression, "", inner, bound)
	case *ast.PathExpression:
		if len(n.Parts) == 0 { // this
			return nil
		}
		name := n.Parts[0]
		if n.Data && name != "root" || slices.Contains(bound, name) {
			return nil
		}
		if n.Data { // @root.name
			if len(n.Parts) > 1 {
				w.name(n.Parts[1], false)
			}
			return nil
		}
		w.name(name, inner)
	}
	return nil
}
