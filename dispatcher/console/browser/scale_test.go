package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
)

// A run of 3,000 steps: what is in the page is what is near the window, wherever one scrolls; it fetches each event once, and says how
// long it takes to open.
func TestARunOf3000Steps(t *testing.T) {
	const (
		steps        = 3000
		mostRequests = 40
		mostBytes    = steps * 2_500 // its events, and some 250 kB that are the console
	)
	var play strings.Builder
	play.WriteString("scenes:\n  - match: march\n    turns:\n")
	for i := range steps - 1 {
		fmt.Fprintf(&play, "      - {text: \"step number %d\", calls: [{name: list_files, arguments: {}}]}\n", i+1)
	}
	fmt.Fprintf(&play, "      - {text: \"step number %d\"}\n", steps)
	h := open(t, settings.AuthOff, play.String())
	h.must(http.StatusOK, "PUT", "/v1/agents/marcher", `{"name":"marcher","tools":["list_files"],"maxSteps":5000,"repeatLimit":0}`)
	h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"m","agent":"marcher","input":"march"}`)
	h.ends(h.url, "m")
	if _, answer := h.ask("GET", "/v1/tasks/m", ""); answer["status"] != "completed" {
		t.Fatal(answer)
	}
	most := func(where string, nodes int) {
		t.Helper()
		if n := eval[int](h, `document.querySelectorAll("*").length`); n > nodes {
			t.Errorf("%s: the page has %d elements, more than %d", where, n, nodes)
		}
	}
	h.do(chromedp.Navigate(h.url + "/runs/m"))
	h.shows("To the newest of 3,000 steps")
	h.do(until(`performance.getEntriesByType("resource").some((r) => r.name.includes("/v1/tasks/m/events"))`)) // all of them have come
	opened := eval[map[string]json.Number](h, `(() => {
		const all = performance.getEntriesByType("resource");
		return {ms: Math.round(performance.now()), requests: all.length, bytes: all.reduce((n, r) => n + r.transferSize, 0)};
	})()`)
	t.Logf("it is open after %s ms at most, with %s requests and %s bytes", opened["ms"], opened["requests"], opened["bytes"])
	if n, _ := opened["requests"].Int64(); n > mostRequests {
		t.Errorf("it takes %d requests, more than %d", n, mostRequests)
	}
	if n, _ := opened["bytes"].Int64(); n > mostBytes || n == 0 {
		t.Errorf("it fetches %d bytes, more than %d", n, mostBytes)
	}
	most("at the top", 1500)
	h.shows("step number 1\n")
	h.do(chromedp.Click(`//button[starts-with(normalize-space(), "To the newest")]`))
	h.shows("step number 3000")
	most("at the end", 1500)
	worst := eval[float64](h, `(async () => {
		let worst = 0, before = 0;
		const frame = async () => {
			before = performance.now();
			await new Promise((done) => requestAnimationFrame(done));
			worst = Math.max(worst, performance.now() - before);
		};
		window.blank = window.nodes = 0;
		for (let y = document.documentElement.scrollHeight; y > 2000; y -= document.documentElement.scrollHeight / 100) {
			scrollTo(0, y);
			for (let i = 0; i < 4; i++) await frame();
			if (![...document.querySelectorAll("[data-row]")].some((e) => e.getBoundingClientRect().bottom > 0 && e.getBoundingClientRect().top < innerHeight)) window.blank++;
			window.nodes = Math.max(window.nodes, document.querySelectorAll("*").length);
		}
		return worst;
	})()`)
	t.Logf("the longest frame while scrolling takes %.0f ms", worst)
	if n := eval[int](h, "window.blank"); n > 0 {
		t.Errorf("%d times nothing was in the window", n)
	}
	if n := eval[int](h, "window.nodes"); n > 2000 {
		t.Errorf("while scrolling the page has %d elements", n)
	}
	h.do(chromedp.Navigate(h.url + "/runs/m?tab=timeline"))
	h.shows("in models")
	most("the timeline", 1500)
}
