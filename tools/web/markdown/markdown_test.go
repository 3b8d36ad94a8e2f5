package markdown_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/tools/web/markdown"
)

func TestMarkdown(t *testing.T) {
	for page, want := range map[string]string{
		`<h1>Tides</h1><p>See <a href="/x">the <b>table</b></a>.`: "# Tides\n\nSee [the **table**](https://a.example/x).",
		`<p>a * b_c [1] # 2 \d`:                                   `a * b_c [1] # 2 \d`,
		`<ol start=7><li>a<li>b</ol>`:                             "7. a\n8. b",
		`<ol start=9999999><li>a</ol>`:                            "1. a",
		strings.Repeat("<ul><li>x", 3):                            "- x\n  \n  - x\n    \n    - x",
	} {
		if got, err := markdown.Convert(t.Context(), page, "https://a.example"); err != nil || got.Text != want {
			t.Errorf("%s: %q, %v", page, got, err)
		}
	}
}

func TestTitle(t *testing.T) {
	for page, want := range map[string]string{
		"<title> Tide\n tables </title><h1>Other": "Tide tables",
		"<h1>Tides":    "",
		"<svg><title>": "",
	} {
		if got, err := markdown.Convert(t.Context(), page, "https://a.example"); err != nil || got.Title != want {
			t.Errorf("%s: %q, %v", page, got.Title, err)
		}
	}
}

// What a page costs grows with its length, whatever it holds: a quarter of a megabyte of brackets took more than a minute, and one of nested
// lists became 20 MiB.
func TestHostilePages(t *testing.T) {
	const size = 1 << 18
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, page := range map[string]string{
		"brackets":   fill("["),
		"lists":      fill(strings.Repeat("<ul><li>x", 200) + strings.Repeat("</ul>", 200)),
		"quotes":     fill(strings.Repeat("<blockquote>x<br>", 400) + strings.Repeat("</blockquote>", 400)),
		"numbers":    fill(strings.Repeat("<ol start=100000000000000000><li>x<br>", 50) + strings.Repeat("</ol>", 50)),
		"formatting": fill("<a><p><b><i></a>"),
		"divisions":  fill(strings.Repeat("<div>", 500) + "x" + strings.Repeat("</div>", 500)),
	} {
		began := time.Now()
		made, err := markdown.Convert(t.Context(), page, "https://a.example")
		got := made.Text
		if took := time.Since(began); err != nil || len(got) > 4*size || took > 15*time.Second {
			t.Errorf("%s: %d bytes became %d in %v, %v", name, len(page), len(got), took, err)
		}
		if n, want := strings.Count(got, "x"), strings.Count(page, "x"); name != "formatting" && n != want {
			t.Errorf("%s: %d of %d texts are left", name, n, want)
		}
	}
	if got, err := markdown.Convert(t.Context(), fill("<div>"), "https://a.example"); err == nil {
		t.Errorf("what is nested without end became %d bytes", len(got.Text))
	}
}
