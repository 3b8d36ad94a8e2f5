package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
)

// While a person types, the dispatcher's own check says what is wrong, on which line; the keyboard leads there, and a screen reader is
// told. Typing stores nothing.
func TestMistakesAreShownWhileTyping(t *testing.T) {
	axe := axe(t)
	h := open(t, settings.AuthOff, script)
	h.furnish()
	_, before := h.ask("GET", "/v1/agents/asker", "")
	h.do(chromedp.Navigate(h.url + "/agents/asker"))
	h.shows("No mistakes.")
	const area = `.editor textarea`
	h.fill(area, "name: asker\ntools:\n  - write_file\nmaxStep: 3\n")
	h.shows("unknown field: did you mean maxSteps?")
	h.picture("mistake")
	if axe != "" {
		h.accessible("a mistake", axe)
	}
	if said := eval[string](h, `document.getElementById(document.querySelector(".editor textarea").getAttribute("aria-describedby")).getAttribute("role") + " " + document.querySelector(".editor textarea").ariaInvalid`); said != "status true" {
		t.Errorf("a screen reader is told %q", said)
	}
	if marked := eval[string](h, `document.querySelector(".editor .numbers .bad").textContent + " " + document.querySelector(".editor .beside").textContent`); marked != "4 unknown field: did you mean maxSteps?" {
		t.Errorf("marked is line %q", marked)
	}
	if !eval[bool](h, `[...document.querySelectorAll("main button")].find((b) => b.textContent === "Store").disabled`) {
		t.Error("what is wrong may be stored")
	}
	h.do(chromedp.Focus(".problems button"), chromedp.KeyEvent("\r"))
	if at := eval[string](h, `document.activeElement.tagName + " " + document.activeElement.value.slice(document.activeElement.selectionStart)`); at != "TEXTAREA maxStep: 3\n" {
		t.Errorf("Enter leads to %q", at)
	}
	h.fill(area, "apiVersion: longshore.run/v1\nkind: Agent\nmetadata:\n  name: other\nspec: {}\n")
	h.shows("must stay asker")
	h.fill(area, "name: asker\ntools: [write_file]\nmaxSteps: 3\n")
	h.shows("No mistakes.")
	if _, agent := h.ask("GET", "/v1/agents/asker", ""); agent["revision"] != before["revision"] {
		t.Error("typing stored a revision")
	}
	h.do(chromedp.Click(button("Store")))
	h.shows("Stored as revision")
	if _, agent := h.ask("GET", "/v1/agents/asker", ""); agent["maxSteps"] != 3.0 {
		t.Errorf("stored is %v", agent)
	}

	h.do(chromedp.Navigate(h.url + "/prompts/greeting"))
	h.shows("No mistakes.")
	h.fill(area, "Hello {name}\nand {")
	h.shows("a { is not closed")
	if marked := eval[string](h, `document.querySelector(".problems").innerText`); !strings.HasPrefix(marked, "Line 2 text: a { is not closed") {
		t.Errorf("of the prompt: %q", marked)
	}
	h.fill(area, "Hello you")
	h.shows("the text does not name name")
}
