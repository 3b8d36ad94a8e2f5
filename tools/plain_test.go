package tools_test

import (
	"testing"

	"github.com/longshore-run/longshore/tools"
)

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\nc":                       "a\tb\nc",
		"a\r\nb\rc":                     "a\nbc",
		"\x1b[31mred\x1b[0m\x00\x7f":    "[31mred[0m",
		"\u202eevil\u202c\u2066x\u2069": "evilx",
		"a\u200bb\u2060c\ufeffd":        "abcd",
		"a\U000e0041\U000e007fb":        "ab",
		"\xffa":                         "\uFFFDa",
		"naïve \u05d0\u200f 文 👩\u200d🚀": "naïve \u05d0\u200f 文 👩\u200d🚀",
	} {
		if got := tools.Plain(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
