package prompt

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// parseFString reads {name}. Two braces are one; anything else in braces is an error, for an expression that is shown
// unreplaced would go unnoticed. Text is filled in as it is, any other value as JSON.
func parseFString(text string) (*template, error) {
	var parts []part
	whole := text
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("line %d: %s", 1+strings.Count(whole[:len(whole)-len(text)], "\n"), fmt.Sprintf(format, args...))
	}
	for text != "" {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			parts = append(parts, part{text: text})
			break
		}
		if i > 0 {
			parts = append(parts, part{text: text[:i]})
			text = text[i:]
		}
		if strings.HasPrefix(text, "{{") || strings.HasPrefix(text, "}}") {
			parts = append(parts, part{text: text[:1]})
			text = text[2:]
			continue
		}
		if text[0] == '}' {
			return nil, wrong("a } stands alone; two are one")
		}
		name, rest, closed := strings.Cut(text[1:], "}")
		switch {
		case !closed:
			return nil, wrong("a { is not closed; two are one")
		case !strict.ValidToken(name):
			return nil, wrong("{%s} is not a variable; write {{ for a brace", strict.Clip(name, 32))
		}
		parts = append(parts, part{name: name})
		text = rest
	}
	t := &template{render: func(vars Vars, b *budget) error { return fill(parts, vars, b) }}
	for _, p := range parts {
		if p.name != "" {
			t.named = append(t.named, p.name)
		}
	}
	return t, nil
}

// part is a text or, if it has a name, a variable.
type part struct{ text, name string }

func fill(parts []part, vars Vars, b *budget) error {
	for _, p := range parts {
		text := p.text
		switch v := vars[p.name].(type) {
		case string:
			text = v
		case nil:
		default:
			j, err := json.Marshal(v)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			text = string(j)
		}
		if _, err := io.WriteString(b, text); err != nil {
			return err
		}
	}
	return nil
}
