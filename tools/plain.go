package tools

import (
	"strings"
	"unicode"
)

// Plain is a text of another party without what hides in it: control characters, those that turn the direction of writing, and those
// that show nothing, such as the tags that can hold a text which only a model reads. Lines end with "\n". It is valid UTF-8.
func Plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

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
