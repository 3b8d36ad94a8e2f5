package browser_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
)

// Each dialog opens by keyboard, keeps the focus while it is open, closes with Esc, and gives the focus back. None has a fault that
// axe-core finds, and none is wider than the window.
func TestDialogs(t *testing.T) {
	axe := axe(t)
	h := open(t, settings.AuthOff, script)
	h.furnish()
	h.provision()
	for _, d := range []struct{ page, text, opener, title string }{
		{"runs", "found", "Columns", "Columns"},
		{"runs/r", "Result", "Fork", "Fork this run"},
		{"runs/r", "Result", "Rate", "Rate this run"},
		{"runs/r", "Result", "Copy as command", "Copy as a command"},
		{"runs/a", "Approve", "Send a message", "Send a message to the run"},
		{"runs/r?tab=files", "haiku.txt", "haiku.txt", "haiku.txt"},
		{"dead-letters", "unknown", "1", "Dead letter 1"},
		{"workers", "Busy", "Drain", "Drain a worker"},
		{"quotas", "acme", "New quota", "Quota"},
		{"quotas", "acme", "Change", "Quota"},
		{"quotas", "acme", "Pause something", "Pause"},
		{"runs/r", "Result", "Add to a suite", "Add to a suite"},
		{"memory/notes", "Newest first", "berth-4", "Item berth-4"},
		{"workspaces", "Files", "Remove", "Remove a workspace"},
		{"runs", "found", "", "Keys"},
	} {
		where := fmt.Sprintf("%q on /%s", d.title, d.page)
		h.look("light", 1280, 1)
		h.do(chromedp.Navigate(h.url + "/" + d.page))
		h.shows(d.text)
		h.settled()
		if d.opener == "" {
			h.do(chromedp.KeyEvent("?"))
		} else {
			h.do(chromedp.Focus(button(d.opener)), chromedp.KeyEvent("\r"))
		}
		h.do(until(`document.querySelector("dialog[open] h2")?.textContent === ` + quote(t, d.title)))
		h.settled()
		h.tabbed(where)
		if out := eval[[]string](h, `[...window.reached].filter((e) => !e.closest("dialog")).map((e) => e.outerHTML.slice(0, 120))`); len(out) > 0 {
			t.Errorf("%s: the focus leaves it for %q", where, out)
		}
		for _, width := range []int64{1280, 390} {
			for _, theme := range []string{"light", "dark"} {
				h.look(theme, width, 1)
				h.fits(where, width)
				if axe != "" {
					h.accessible(where, axe)
				}
			}
		}
		h.photograph("dialog_"+d.title, "dark", 390)
		h.look("light", 1280, 1)
		h.do(chromedp.KeyEvent("\x1b"), until(`!document.querySelector("dialog")`))
		if d.opener != "" {
			h.do(until(`document.activeElement.textContent.trim() === ` + quote(t, d.opener)))
		}
	}
}

// The first link leads past the menu, and a link leads to the content.
func TestFocusMovesToTheContent(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.shows("Nothing has run yet")
	h.do(chromedp.KeyEvent("\t"))
	if at := eval[string](h, "document.activeElement.textContent"); at != "Skip to the content" {
		t.Errorf("the first link is %q", at)
	}
	h.do(chromedp.KeyEvent("\r"))
	inMain := `document.getElementById("main").contains(document.activeElement)`
	h.do(until(inMain))
	h.do(chromedp.KeyEvent("\t"))
	if !eval[bool](h, inMain+` && document.activeElement.matches(".tabs a")`) {
		t.Errorf("after the jump the next is %q", eval[string](h, "document.activeElement.outerHTML.slice(0, 200)"))
	}
	h.do(chromedp.Focus(link("Agents")), chromedp.KeyEvent("\r"))
	h.shows("What it does")
	h.do(until(inMain), chromedp.KeyEvent("\t"))
	if !eval[bool](h, inMain) {
		t.Error("the focus is not in the view that was opened")
	}
}
