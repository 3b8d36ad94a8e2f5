package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
)

// hostile is what models, tools and tasks may write. Where it runs, it sets canary.
func hostile() []string {
	run := "window.canary=1"
	list := []string{
		"<script>" + run + "</script>", "<img src=x onerror=" + run + ">", "<svg onload=" + run + ">", "<svg><script>" + run + "</script></svg>",
		"<iframe srcdoc='<script>parent.canary=1</script>'></iframe>", "<iframe src=javascript:parent.canary=1>", "<body onload=" + run + ">",
		"<a href=javascript:" + run + ">a</a>", "[a](javascript:" + run + ")", "[a](JaVaScRiPt:" + run + ")", "[a](data:text/html,<script>" + run + "</script>)",
		"[a](vbscript:x)", "![a](javascript:" + run + ")", "![a](http://evil.example/a.png)", "![a](//evil.example/a.png)", "![a](data:image/svg+xml,<svg onload=" + run + ">)",
		"<math><mtext><table><mglyph><style><img src=x onerror=" + run + ">", "<form action=http://evil.example><input name=a autofocus onfocus=" + run + ">",
		"<input autofocus onfocus=" + run + ">", "<details open ontoggle=" + run + ">", "<video><source onerror=" + run + ">", "<audio src=x onerror=" + run + ">",
		"<object data=javascript:" + run + ">", "<embed src=javascript:" + run + ">", "<link rel=stylesheet href=http://evil.example/a.css>",
		"<meta http-equiv=refresh content=0;url=http://evil.example>", "<base href=http://evil.example/>", "<style>@import 'http://evil.example/a.css'</style>",
		"<style>*{display:none!important}</style>", "<div style='position:fixed;inset:0;background:red'>x</div>", "<template><script>" + run + "</script></template>",
		"<noscript><p title='</noscript><img src=x onerror=" + run + ">'>", "<!--><img src=x onerror=" + run + ">-->", "<![CDATA[<script>" + run + "</script>]]>",
		"<marquee onstart=" + run + ">x</marquee>", "<keygen autofocus onfocus=" + run + ">", "<isindex onfocus=" + run + " autofocus>", "\"><script>" + run + "</script>",
		"'-" + run + "-'", "${" + run + "}", "{{constructor.constructor('" + run + "')()}}", "</textarea><script>" + run + "</script>", "</title><script>" + run + "</script>",
		"</pre><script>" + run + "</script>", "`<script>" + run + "</script>`", "```html\n<script>" + run + "</script>\n```", "    <script>" + run + "</script>",
		"<http://evil.example>", "[x]: http://evil.example\n[x]", "<a href='http://evil.example' onclick=" + run + ">a</a>", "<p id=app>x</p>", "<img name=getElementById>",
		"__proto__", "constructor", "toString", "hasOwnProperty", "\u202egnp.exe", "\u2066a\u2069", "\u200b\u200d\ufeff", "\x1b[31mred\x1b[0m\x07", "\x00\x01\x02",
		"مرحبا بالعالم", "\u061cab\u00ad", "pay \U000e0061\U000e0062ten", "\u2028a\u2029\u3164", "👩‍👩‍👧‍👦🏳️‍🌈", "&lt;script&gt;" + run + "&lt;/script&gt;", "&#60;script&#62;", strings.Repeat("a", 20_000), strings.Repeat("\u0301", 2000),
		strings.Repeat("| a ", 200) + "|\n" + strings.Repeat("|---", 200) + "|\n" + strings.Repeat(strings.Repeat("| 1 ", 200)+"|\n", 20), strings.Repeat("> ", 300) + "deep",
		strings.Repeat("- ", 200) + "x", strings.Repeat("[", 5000), strings.Repeat("*a", 3000), strings.Repeat("\n", 3000) + "end",
	}
	return list
}

// page is what a page is after it has shown something hostile.
type page struct {
	Canary bool  `json:"canary"` // something ran
	Wide   int64 `json:"wide"`
	Menu   bool  `json:"menu"` // it is there
}

// What a model, a tool or a task writes is text: none of it runs, loads something, or breaks the page.
func TestHostileContent(t *testing.T) {
	all := hostile()
	if len(all) < 60 {
		t.Fatalf("%d texts", len(all))
	}
	quote := func(v any) string { return quote(t, v) }
	var play strings.Builder
	play.WriteString("scenes:\n")
	for i, text := range all {
		file := quote(map[string]string{"filePath": fmt.Sprintf("f%d.txt", i), "content": text})
		fmt.Fprintf(&play, "  - match: case-%d-end\n    turns:\n      - {text: %s, calls: [{name: write_file, arguments: %s}, {name: %s, arguments: {}}]}\n      - {text: %s}\n",
			i, quote(text), file, quote(text[:min(len(text), 40)]), quote(text))
	}
	h := open(t, settings.AuthOff, play.String())
	for i, text := range all {
		body := quote(map[string]any{"id": fmt.Sprintf("h%d", i), "input": fmt.Sprintf("case-%d-end %s", i, text), "labels": map[string]string{"k": text[:min(len(text), 40)]}})
		if status, answer := h.ask("POST", "/v1/tasks?wait=60s", body); status != http.StatusOK && status != http.StatusBadRequest {
			t.Fatalf("%.60q: %d %v", text, status, answer)
		}
	}
	look := func(path, text string) {
		h.do(chromedp.Navigate(h.url + path))
		h.shows(text)
		h.harmless(path)
	}
	look("/runs?columns=id,status,agent,input,labels", "found")
	for i := range all {
		if status, _ := h.ask("GET", fmt.Sprintf("/v1/tasks/h%d", i), ""); status == http.StatusOK {
			look(fmt.Sprintf("/runs/h%d", i), "Result")
			if i%20 == 0 {
				for tab, shows := range map[string]string{"timeline": "in models", "files": fmt.Sprintf("f%d.txt", i), "log": "started", "logs": "", "raw": "Copy JSON"} {
					look(fmt.Sprintf("/runs/h%d?tab=%s", i, tab), shows)
				}
			}
		}
	}
}
