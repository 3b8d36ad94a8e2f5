package prompt

import (
	"errors"
	"strings"

	"github.com/cbroglie/mustache"
)

// noPartials provides none, wherever the library asks.
type noPartials struct{}

// Get implements mustache.PartialProvider.
func (noPartials) Get(string) (string, error) { return "", errFile }

// parseMustache reads a template whose delimiters stay what they are. The library writes a text, if an empty one,
// in every turn of a section: the budget sees each.
func parseMustache(text string) (*template, error) {
	if strings.Contains(text, "{{=") {
		return nil, errors.New("may not change the delimiters")
	}
	m, err := mustache.ParseStringPartialsRaw(text, noPartials{}, true)
	if err != nil {
		return nil, err
	}
	t := &template{render: func(vars Vars, b *budget) error { return m.FRender(b, map[string]any(vars)) }}
	return t, t.mustache(m.Tags(), false)
}

// mustache gathers names and refuses partials.
func (t *template) mustache(tags []mustache.Tag, inner bool) error {
	for _, tag := range tags {
		if tag.Type() == mustache.Partial {
			return errFile
		}
		if name := root(tag.Name()); name != "" {
			t.name(name, inner)
		}
		if tag.Type() == mustache.Variable {
			continue
		}
		if err := t.mustache(tag.Tags(), inner || tag.Type() == mustache.Section); err != nil {
			return err
		}
	}
	return nil
}

func (t *template) name(name string, inner bool) {
	if inner {
		t.inner = append(t.inner, name)
	} else {
		t.named = append(t.named, name)
	}
}
