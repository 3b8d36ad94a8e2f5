package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/longshore-run/longshore/messages"
)

// Format writes a definition as the YAML that Parse reads, without its revision. The same definition is always written
// the same. Texts of several lines are blocks, and characters that cannot be seen are escaped: what is read is what there is.
func Format(d messages.Definition) ([]byte, error) {
	name, description := d.Name, d.Description
	d.Name, d.Description, d.Revision = "", "", 0
	encoded, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode agent %s: %w", name, err)
	}
	dec := json.NewDecoder(bytes.NewReader(encoded))
	dec.UseNumber()
	var spec map[string]any
	if err := dec.Decode(&spec); err != nil {
		return nil, fmt.Errorf("encode agent %s: %w", name, err)
	}
	delete(spec, "name")
	numbers(spec)
	meta := struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description,omitempty"`
	}{name, description}
	var tree yaml.Node
	if err := tree.Encode(struct {
		APIVersion string         `yaml:"apiVersion"`
		Kind       string         `yaml:"kind"`
		Metadata   any            `yaml:"metadata"`
		Spec       map[string]any `yaml:"spec"`
	}{APIVersion, Kind, meta, spec}); err != nil {
		return nil, fmt.Errorf("encode agent %s: %w", name, err)
	}
	named := stand(&tree)
	out, err := yaml.Dump(&tree, yaml.WithIndent(2))
	if err != nil {
		return nil, fmt.Errorf("encode agent %s: %w", name, err)
	}
	var text bytes.Buffer
	for _, r := range string(out) {
		switch {
		case r == '\n' || !hidden(r):
			text.WriteRune(cmp.Or(named[r], r))
		case r > maxShort:
			fmt.Fprintf(&text, `\U%08x`, r)
		default:
			fmt.Fprintf(&text, `\u%04x`, r)
		}
	}
	return text.Bytes(), nil
}

// maxShort is the last character whose escape has four digits.
const maxShort = 0xFFFF

// stand prepares texts for a library that escapes each character beyond 16 bits, and with it the whole text: others stand for them, which it
// returns. A text with characters that cannot be seen is quoted, so that they can be escaped.
func stand(tree *yaml.Node) map[rune]rune {
	const first, last = 0xE000, 0xF8FF // for private use
	taken, of, named := map[rune]bool{}, map[rune]rune{}, map[rune]rune{}
	scalars(tree, func(n *yaml.Node) {
		for _, r := range n.Value {
			taken[r] = true
		}
	})
	next := rune(first)
	scalars(tree, func(n *yaml.Node) {
		switch {
		case strings.ContainsFunc(n.Value, hidden):
			n.Style = yaml.DoubleQuotedStyle
		case strings.Contains(n.Value, "\n"):
			n.Style = yaml.LiteralStyle
		}
		n.Value = strings.Map(func(r rune) rune {
			if r <= maxShort || hidden(r) {
				return r
			}
			for of[r] == 0 && taken[next] && next <= last {
				next++
			}
			if of[r] == 0 && next <= last {
				of[r], named[next] = next, r
				next++
			}
			return cmp.Or(of[r], r)
		}, n.Value)
	})
	return named
}

func scalars(n *yaml.Node, see func(*yaml.Node)) {
	if n.Kind == yaml.ScalarNode {
		see(n)
	}
	for _, c := range n.Content {
		scalars(c, see)
	}
}

// hidden reports whether a character is not seen, or changes how the text around it reads, as the console has it.
func hidden(r rune) bool {
	switch {
	case r == '\t' || r == '\n':
		return false
	case r == '\u034f', r == '\u115f', r == '\u1160', r == '\u17b4', r == '\u17b5', r == '\u2028', r == '\u2029', r == '\u3164', r == '\uffa0':
		return true
	case r >= 0xE0100 && r <= 0xE01EF:
		return true
	default:
		return unicode.In(r, unicode.Cc, unicode.Cf)
	}
}

// numbers makes the numbers of JSON those of YAML, whole ones without an exponent.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // it is out of range at worst
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}
