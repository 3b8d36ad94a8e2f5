package mcp

import (
	"strings"
	"unicode"

	"github.com/longshore-run/longshore/messages/strict"
)

// hidden reports whether a character shows nothing of itself but changes what people or terminals see: control characters, those
// that turn the direction of writing, and the tags that can hold a text which only a model reads.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r >= 0xE0000 && r <= 0xE007F:
		return true
	default:
		return r == '\u200B' || r == '\u2060' || r == '\uFEFF'
	}
}

// plain is a text of a server without what hides in it.
func plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// line is a text of a server on one line.
func line(s string, most int) string {
	return strict.Clip(strings.Join(strings.Fields(plain(s)), " "), most)
}
