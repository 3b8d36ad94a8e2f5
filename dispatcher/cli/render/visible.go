package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	zeroWidthNonJoiner = '\u200c' // Persian and others need it
	zeroWidthJoiner    = '\u200d' // emoji of several parts need it
	maxMarks           = 4        // on one character: more is a trick, not a script
)

// Visible is s on one line of a terminal: white space is folded, and whatever could steer the terminal, hide text or
// turn its direction is written out, such as \x1b.
func Visible(s string) string {
	var b strings.Builder
	space := false
	marks := 0
	for i, r := range s {
		if unicode.IsSpace(r) && r != '\u0085' { // NEL is a C1 control too
			space = true
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		marks = writeVisible(&b, s[i:], r, marks)
	}
	return b.String()
}

// VisibleLines is visible for a text of several lines, whose line breaks and spaces stay.
func VisibleLines(s string) string {
	var b strings.Builder
	marks := 0
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for i, r := range s {
		switch {
		case r == '\n', r == '\t', unicode.Is(unicode.Zs, r):
			b.WriteRune(r)
			marks = 0
		default:
			marks = writeVisible(&b, s[i:], r, marks)
		}
	}
	return b.String()
}

// visibleJSON is the same JSON with escapes for what could steer a terminal; outside its strings there is none.
func visibleJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsPrint(r), IsJoiner(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// IsJoiner reports whether a character only joins or separates others.
func IsJoiner(r rune) bool { return r == zeroWidthJoiner || r == zeroWidthNonJoiner }

// writeVisible writes the character r, with which s begins, after a number of marks; it returns their number after it.
func writeVisible(b *strings.Builder, s string, r rune, marks int) int {
	isMark := unicode.Is(unicode.M, r) || IsJoiner(r)
	switch {
	case r == utf8.RuneError && !strings.HasPrefix(s, string(utf8.RuneError)): // a byte that is no UTF-8
		fmt.Fprintf(b, `\x%02x`, s[0])
	case isMark && marks < maxMarks:
		b.WriteRune(r)
		return marks + 1
	case !isMark && unicode.IsPrint(r):
		b.WriteRune(r)
	case r < utf8.RuneSelf:
		fmt.Fprintf(b, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
	if isMark {
		return marks
	}
	return 0
}
