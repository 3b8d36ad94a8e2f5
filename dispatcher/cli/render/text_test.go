package render

import (
	"strings"
	"testing"
	"time"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		" a \t b\r\n\n c ":                "a b c",
		"\x1b[31mred\x07":                 `\x1b[31mred\x07`,
		"\x9b1m \u009b1m \u0085":          `\x9b1m \u009b1m \u0085`,
		"\u202egnp.\u2066exe\ufeff":       `\u202egnp.\u2066exe\ufeff`,
		"\U000e0041":                      `\U000e0041`,
		"a\u0301\u0301\u0301\u0301\u0301": "a\u0301\u0301\u0301\u0301" + `\u0301`,
		"replaced \ufffd":                 "replaced \ufffd",
		"می\u200cخواهم 👩\u200d🚀":          "می\u200cخواهم 👩\u200d🚀",
		"no\u00a0break":                   "no break",
	} {
		if got := Visible(in); got != want {
			t.Errorf("visible(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := VisibleLines("a\r\n\tb\rc\u00a0d\x1b\n"), "a\n\tb\\x0dc\u00a0d\\x1b\n"; got != want {
		t.Errorf("visibleLines: %q, want %q", got, want)
	}
}

func TestVisibleJSON(t *testing.T) {
	for in, want := range map[string]string{
		"{\"a\":\"é 二 👩\u200d🚀\"}":       "{\"a\":\"é 二 👩\u200d🚀\"}",
		"\"\u009b\x7f\u202e\U000e0041\"": `"\u009b\u007f\u202e\udb40\udc41"`,
		"\"\x9b\"":                       "\"\ufffd\"",
	} {
		if got := visibleJSON(in); got != want {
			t.Errorf("visibleJSON(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestColumns(t *testing.T) {
	for in, want := range map[string]int{
		"": 0, "abc": 3, "é": 1, "e\u0301": 1, "二": 2, "🚀": 2, "✓": 1, "☂\ufe0f": 2, "ﾊ": 1, "ハ": 2, "가": 2, "…": 1, "👩\u200d🚀": 4,
	} {
		if got := Columns(in); got != want {
			t.Errorf("columns(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	for _, tc := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"abc", 1, "…"},
		{"abc", 0, ""},
		{"abc", -1, ""},
		{"", 5, ""},
		{"二二二", 6, "二二二"},
		{"二二二", 5, "二二…"},
		{"二二二", 4, "二…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
	} {
		if got := Truncate(tc.in, tc.n); got != tc.want {
			t.Errorf("truncate(%q, %d) = %q, want %q", tc.in, tc.n, got, tc.want)
		}
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("二e\u0301☂\ufe0f👩\u200d🚀", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		got := Truncate(s, n)
		if Columns(got) > max(n, 0) {
			t.Errorf("%q takes %d columns, not %d", got, Columns(got), n)
		}
		if got != s && got != "" && (!strings.HasSuffix(got, "…") || !strings.HasPrefix(s, strings.TrimSuffix(got, "…"))) {
			t.Errorf("%q is no beginning of %q", got, s)
		}
	})
}

func TestQuantities(t *testing.T) {
	for got, want := range map[string]string{
		Span(-time.Second): "0s", Span(59 * time.Second): "59s", Span(65 * time.Second): "1m05s", Span(25 * time.Hour): "1d01h",
		Span(61 * time.Minute): "1h01m", Took(40 * time.Millisecond): "40ms", Took(1250 * time.Millisecond): "1.2s",
		Took(59990 * time.Millisecond): "59.9s", Millis(1 << 62): "365d00h", Millis(-1): "0ms", Millis(-1 << 63): "0ms", Tokens(1): "1 token", Tokens(9999): "9999 tokens",
		Tokens(12345): "12.3k tokens", Count(0, "step"): "0 steps",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
