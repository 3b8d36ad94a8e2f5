package files

import (
	"errors"
	"path"
	"regexp"
	"strings"
)

// maxGlob is how many bytes a glob may have.
const maxGlob = 256

// glob chooses files by name. "*" in it is any text without a slash, "**" any text, "?" one character, and "{a,b}" one of two.
// Without a slash it is for the last part of a path. It is made a regular expression, which takes time in proportion to
// the name however it is written.
type glob struct {
	expr *regexp.Regexp
	base bool // it is for the last part of a path
}

func parseGlob(text string) (*glob, error) {
	if len(text) > maxGlob {
		return nil, errors.New("must not be longer than 256 bytes")
	}
	if strings.HasPrefix(text, "/") || strings.Contains(text, "..") {
		return nil, errors.New(`must be relative to the workspace, without ".."`)
	}
	g := &glob{base: !strings.Contains(text, "/")}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	open := 0
	for i := 0; i < len(text); {
		rest := text[i:]
		n := 1
		switch {
		case strings.HasPrefix(rest, "**/") && (i == 0 || text[i-1] == '/'):
			b.WriteString(`(?:.*/)?`)
			n = len("**/")
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			n = len("**")
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
		case rest[0] == '?':
			b.WriteString(`[^/]`)
		case rest[0] == '{':
			b.WriteString(`(?:`)
			open++
		case rest[0] == '}' && open > 0:
			b.WriteString(`)`)
			open--
		case rest[0] == ',' && open > 0:
			b.WriteString(`|`)
		default:
			for n < len(rest) && !strings.ContainsRune("*?{},", rune(rest[n])) {
				n++
			}
			b.WriteString(regexp.QuoteMeta(rest[:n]))
		}
		i += n
	}
	if open > 0 {
		return nil, errors.New("{ without }")
	}
	b.WriteString(`\z`)
	var err error
	if g.expr, err = regexp.Compile(b.String()); err != nil {
		return nil, errors.New("cannot be read")
	}
	return g, nil
}

// match reports whether the glob chooses a file; a nil one chooses all.
func (g *glob) match(name string) bool {
	if g == nil {
		return true
	}
	if g.base {
		name = path.Base(name)
	}
	return g.expr.MatchString(name)
}
