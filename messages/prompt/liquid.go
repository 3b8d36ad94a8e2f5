package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/osteele/liquid/parser"
	"github.com/osteele/liquid/render"
	"github.com/osteele/liquid/tags"

	"github.com/longshore-run/longshore/messages/strict"
)

// tagTurn is put into every loop, so that the budget sees each turn.
const tagTurn = "longshore_turn"

// parseLiquid reads a template that uses the tags of liquidTags and the filters of liquidFilters alone. What could
// make much of little, such as capture and ranges, is not among them.
func parseLiquid(text string) (*template, error) {
	t := &template{}
	source, err := t.liquid(text)
	if err != nil {
		return nil, err
	}
	t.render = func(vars Vars, b *budget) error {
		root, err := compile(source, b)
		if err != nil {
			return err
		}
		if err := render.Render(root, b, maps.Clone(map[string]any(vars)), config(b)); err != nil {
			return err
		}
		return nil
	}
	_, err = compile(source, newBudget())
	return t, err
}

func compile(source string, b *budget) (render.Node, error) {
	node, err := config(b).Compile(source, parser.SourceLoc{LineNo: 1})
	if err != nil {
		return nil, err
	}
	return node, nil
}

func config(b *budget) render.Config {
	cfg := render.NewConfig()
	tags.AddStandardTags(cfg)
	refuse := func(string) (func(io.Writer, render.Context) error, error) { return nil, errFile }
	cfg.AddTag("include", refuse) // liquidTags does not have it either
	cfg.AddTag(tagTurn, func(string) (func(io.Writer, render.Context) error, error) {
		return func(io.Writer, render.Context) error { return b.turn() }, nil
	})
	for name, filter := range liquidFilters(b) {
		cfg.AddFilter(name, filter)
	}
	return cfg
}

// liquidTags are those that a prompt may use.
func liquidTags() []string {
	return []string{
		"assign", "if", "elsif", "else", "endif", "unless", "endunless", "case", "when", "endcase",
		"for", "endfor", "break", "continue", "comment", "endcomment", "raw", "endraw",
	}
}

// Patterns of what stands in tags. Texts are taken out before the other two are looked for.
var (
	liquidText   = regexp.MustCompile(`"[^"]*"|'[^']*'`)
	liquidFilter = regexp.MustCompile(`\|\s*[\w-]+`)
	liquidName   = regexp.MustCompile(`(?:^|[^\w.\-])([A-Za-z_][\w-]*)(\s*:)?`)
)

// liquid checks the tags, gathers names and returns the text with a turn in every loop.
func (t *template) liquid(text string) (string, error) {
	var out strings.Builder
	bound := map[string]bool{"forloop": true}
	for _, w := range []string{
		"and", "or", "not", "contains", "true", "false", "nil", "null", "empty", "blank", "in", "reversed", "limit", "offset",
	} {
		bound[w] = true
	}
	loops, verbatim := 0, ""
	for _, token := range parser.Scan(text, parser.SourceLoc{}, nil) {
		out.WriteString(token.Source)
		switch {
		case token.Type == parser.TagTokenType && verbatim != "":
			if token.Name == verbatim {
				verbatim = ""
			}
			continue
		case verbatim != "":
			continue
		case token.Type != parser.TagTokenType && token.Type != parser.ObjTokenType:
			continue
		case strings.Contains(liquidText.ReplaceAllString(token.Args, "''"), ".."): // a filter would make a list of it
			return "", errors.New("may not use ranges")
		case token.Type == parser.ObjTokenType:
			t.liquidNames(token.Args, bound, loops > 0)
			continue
		case !slices.Contains(liquidTags(), token.Name):
			return "", fmt.Errorf("the tag %s is not one that a prompt may use", strict.Clip(token.Name, 32))
		}
		switch token.Name {
		case "raw", "comment":
			verbatim = "end" + token.Name
		case "for":
			loops++
			item, over, _ := strings.Cut(strings.TrimSpace(token.Args), " ")
			t.liquidNames(over, bound, loops > 1)
			bound[item] = true
			out.WriteString("{% " + tagTurn + " %}")
		case "endfor":
			loops--
		case "assign":
			name, value, _ := strings.Cut(token.Args, "=")
			t.liquidNames(value, bound, loops > 0)
			bound[strings.TrimSpace(name)] = true
		default:
			t.liquidNames(token.Args, bound, loops > 0)
		}
	}
	return out.String(), nil
}

// liquidNames gathers the variables of an expression.
func (t *template) liquidNames(expr string, bound map[string]bool, inner bool) {
	expr = liquidFilter.ReplaceAllString(liquidText.ReplaceAllString(expr, "''"), "|")
	for _, m := range liquidName.FindAllStringSubmatch(expr, -1) {
		if !bound[m[1]] && m[2] == "" {
			t.name(m[1], inner)
		}
	}
}

// liquidFilters are those of Liquid that a prompt needs. Each counts as a turn, and what it makes or looks through as work.
func liquidFilters(b *budget) map[string]any {
	spend := func(n int) error {
		if err := b.turn(); err != nil {
			return err
		}
		return b.use(n)
	}
	made := func(s string) (string, error) {
		if err := spend(len(s)); err != nil {
			return "", err
		}
		if len(s) > maxOutput {
			return "", errOutput
		}
		return s, nil
	}
	return map[string]any{
		"append":     func(s, more string) (string, error) { return made(s + more) },
		"prepend":    func(s, more string) (string, error) { return made(more + s) },
		"upcase":     func(s string) (string, error) { return made(strings.ToUpper(s)) },
		"downcase":   func(s string) (string, error) { return made(strings.ToLower(s)) },
		"strip":      func(s string) (string, error) { return made(strings.TrimSpace(s)) },
		"capitalize": func(s string) (string, error) { return made(capital(s)) },
		"replace": func(s, old, with string) (string, error) {
			if n := len(s) + strings.Count(s, old)*len(with); n > maxOutput+len(s) {
				return "", errOutput
			}
			return made(strings.ReplaceAll(s, old, with))
		},
		"remove": func(s, old string) (string, error) { return made(strings.ReplaceAll(s, old, "")) },
		"split": func(s, by string) ([]any, error) {
			if err := spend(len(s) + 32*(strings.Count(s, by)+1)); err != nil {
				return nil, err
			}
			var out []any
			for part := range strings.SplitSeq(s, by) {
				out = append(out, part)
			}
			return out, nil
		},
		"join": func(list []any, by string) (string, error) {
			if err := spend(16 * len(list)); err != nil {
				return "", err
			}
			texts := make([]string, len(list))
			size := 0
			for i, v := range list {
				texts[i] = fmt.Sprint(v)
				if size += len(texts[i]) + len(by); size > maxOutput+len(by) {
					return "", errOutput
				}
			}
			return made(strings.Join(texts, by))
		},
		"json": func(v any) (string, error) {
			j, err := json.Marshal(v)
			if err != nil {
				return "", fmt.Errorf("encode: %w", err)
			}
			return made(string(j))
		},
		"size": func(v any) (int, error) {
			n := sizeOf(v)
			return n, spend(n)
		},
		"first":  func(list []any) any { return at(list, 0) },
		"last":   func(list []any) any { return at(list, len(list)-1) },
		"plus":   func(a, b float64) float64 { return a + b },
		"minus":  func(a, b float64) float64 { return a - b },
		"times":  func(a, b float64) float64 { return a * b },
		"redact": b.redacted,
		"truncate": func(s string, n int) (string, error) {
			if err := spend(4 * len(s)); err != nil {
				return "", err
			}
			if r := []rune(s); n >= 0 && len(r) > n {
				s = string(r[:n]) + "…"
			}
			return made(s)
		},
		"default": func(v, instead any) (any, error) {
			if v == nil || v == false || sizeOf(v) == 0 {
				return instead, spend(1)
			}
			return v, spend(1)
		},
	}
}

func capital(s string) string {
	r := []rune(s)
	if len(r) == 0 {
		return s
	}
	return strings.ToUpper(string(r[:1])) + string(r[1:])
}

// sizeOf is how long a text, list or object is; of anything else it is 1.
func sizeOf(v any) int {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v)
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	default:
		return 1
	}
}

func at(list []any, i int) any {
	if i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}
