package render

import "github.com/mattn/go-runewidth"

// widths of characters, whatever the locale says: what one person sees must fit on another's terminal too.
var widths = &runewidth.Condition{StrictEmojiNeutral: true} //nolint:gochecknoglobals // a constant

// Widths in columns.
const (
	DefaultWidth = 80
	MinWidth     = 20   // a line that is cut to less no longer tells anything
	wholeWidth   = 2000 // of a line's text that is not cut; a hostile one must not fill the screen forever
	PlainWidth   = 240  // of a line's text where the width is unknown; the result is shown whole anyway
)

const emojiStyle = '\ufe0f' // makes the character before it an emoji of two columns

// Columns is how many columns of a terminal a text takes, at most: a terminal that joins characters takes fewer.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += ColumnsOf(r)
	}
	return n
}

// ColumnsOf is how many columns a character takes, at most.
func ColumnsOf(r rune) int {
	if r == emojiStyle {
		return 1
	}
	return widths.RuneWidth(r)
}

// Truncate cuts a text that takes more than n columns, and shows that it did.
func Truncate(s string, n int) string {
	if n < 1 {
		return ""
	}
	used, cut := 0, 0
	for i, r := range s {
		if used <= n-1 {
			cut = i // what is before it leaves a column for the ellipsis
		}
		if used += ColumnsOf(r); used > n {
			return s[:cut] + "…"
		}
	}
	return s
}
