package browser_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const (
	windowHeight = 900
	twoFrames    = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))` // what was changed is drawn
)

// look has the page drawn in a theme ("light" or "dark"), in a window of a width in CSS pixels.
func (h *hall) look(theme string, width int64, scale float64) {
	h.Helper()
	scheme := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}
	if _, err := chromedp.Call(h.tab(), emulation.SetEmulatedMedia, scheme); err != nil {
		h.Fatal(err)
	}
	h.do(chromedp.EmulateViewport(width, windowHeight, chromedp.EmulateScale(scale)))
	eval[bool](h, twoFrames)
}

// settled waits until nothing is loaded for the first time.
func (h *hall) settled() {
	h.Helper()
	h.do(until(`!document.querySelector(".skeleton")`))
}

// fits checks that the page does not scroll to the side, and that what is in a cell of a table stays in it.
func (h *hall) fits(where string, width int64) {
	h.Helper()
	if wide := eval[int64](h, "document.documentElement.scrollWidth"); wide > width {
		h.Errorf("%s is %d wide in a window of %d", where, wide, width)
	}
	for _, cell := range eval[[]string](h, `[...document.querySelectorAll(".scroll td:not(.text)")].filter((c) => c.scrollWidth > c.clientWidth + 1).map((c) => c.innerText.slice(0, 100))`) {
		h.Errorf("%s, %d wide: the text of a cell reaches into the next one: %s", where, width, cell)
	}
}

// accessible checks a page with axe-core.
func (h *hall) accessible(where, axe string) {
	h.Helper()
	if !eval[bool](h, `"axe" in window`) {
		h.do(chromedp.Evaluate[chromedp.Void](axe))
	}
	found := eval[[]string](h, `axe.run(document, {resultTypes: ["violations"]}).then((r) =>
		r.violations.flatMap((v) => v.nodes.map((n) => v.id + " at " + n.target.join(" ") + ": " + n.failureSummary.replace(/\s+/g, " ") + " " + n.html.slice(0, 160))))`)
	for _, what := range found {
		h.Errorf("%s: %s", where, what)
	}
}

// axe is the text of axe-core; empty: it is left out.
func axe(t *testing.T) string {
	t.Helper()
	name := os.Getenv("LONGSHORE_AXE")
	if name == "" {
		t.Log("left out: LONGSHORE_AXE names no axe.min.js")
		return ""
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n;true"
}

// What can be operated and is not disabled or folded away.
const controls = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter((e) =>
	!e.disabled && e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true}) && (!document.querySelector("dialog[open]") || e.closest("dialog[open]")))`

// tabbed goes through a page with the tab key alone, and checks that it reaches everything, each time visibly.
func (h *hall) tabbed(where string) {
	h.Helper()
	n := eval[int](h, `(() => {
		window.reached = new Set(); window.dim = [];
		document.activeElement?.blur();
		document.addEventListener("focusin", (e) => {
			window.reached.add(e.target);
			const s = getComputedStyle(e.target);
			if (s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 1) window.dim.push(e.target.outerHTML.slice(0, 120));
		});
		getSelection().removeAllRanges(); scrollTo(0, 0);
		return `+controls+`.length;
	})()`)
	keys := make([]chromedp.Action[chromedp.Void], n+4) // what scrolls is reached too
	for i := range keys {
		keys[i] = chromedp.KeyEvent("\t")
	}
	h.do(keys...)
	missed := eval[[]string](h, controls+`.filter((e) => !window.reached.has(e)).map((e) => e.outerHTML.slice(0, 120))`)
	if len(missed) > 0 {
		h.Errorf("%s: %d of %d are not reached by the tab key: %s", where, len(missed), n, strings.Join(missed, "\n"))
	}
	h.do(chromedp.Evaluate[chromedp.Void]("document.activeElement?.blur()"))
	if dim := eval[[]string](h, "window.dim"); len(dim) > 0 {
		h.Errorf("%s: focus is not seen on %s", where, strings.Join(dim, "\n"))
	}
}

func quote(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// whole is a picture of all of the page, taken in a window as high as the page: of one that reaches beyond the window Chromium does not draw
// all, and leaves tables blank.
func (h *hall) whole(width int64) []byte {
	h.Helper()
	height := eval[int64](h, "document.documentElement.scrollHeight")
	h.do(chromedp.EmulateViewport(width, height))
	eval[bool](h, twoFrames)
	image, err := chromedp.Run(h.tab(), chromedp.FullScreenshot(100))
	if err != nil {
		h.Fatal(err)
	}
	h.do(chromedp.EmulateViewport(width, windowHeight))
	return image
}

// photograph keeps a picture of the page in LONGSHORE_SCREENSHOTS.
func (h *hall) photograph(page, theme string, width int64) {
	h.Helper()
	folder := os.Getenv("LONGSHORE_SCREENSHOTS")
	if folder == "" {
		return
	}
	image := h.whole(width)
	name := fmt.Sprintf("%s/%s-%s-%d.png", folder, strings.NewReplacer("/", "_", "?tab=", "_").Replace("view_"+page), theme, width)
	if err := os.WriteFile(name, image, 0o600); err != nil {
		h.Error(err)
	}
}
