package cli

import "github.com/mattn/go-runewidth"

// widths of characters, whatever the locale says: what one person sees must fit on another's terminal too.
var widths = &runewidth.Condition{StrictEmojiNeutral: true} //nolint:gochecknoglobals // a constant

const emojiStyle = '\ufe0f' // makes the character before it an emoji of two columns

// columns is how many columns of a terminal a text takes, at most: a terminal that joins characters takes fewer.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if r == emojiStyle {
		return 1
	}
	return widths.RuneWidth(r)
}

// truncate cuts a text that takes more than n columns, and shows that it did.
func truncate(s string, n int) string {
	if n < 1 {
		return ""
	}
	used, cut := 0, 0
	for i, r := range s {
		if used <= n-1 {
			cut = i // what is before it leaves a column for the ellipsis
		}
		if used += columnsOf(r); used > n {
			return s[:cut] + "…"
		}
	}
	return s
}
