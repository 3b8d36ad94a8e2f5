package browser_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
)

// The keys of the inbox act on the call that is marked, and it stays marked while others come and go. A key that is held down acts once.
func TestKeysOfTheInboxStayWithTheirCall(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	for _, id := range []string{"in-1", "in-2", "in-3"} {
		h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"`+id+`","agent":"asker","input":"write"}`)
		h.shown("/v1/approvals", id)
	}
	h.do(chromedp.Navigate(h.url + "/inbox"))
	h.shows("in-3")
	h.do(chromedp.Evaluate[chromedp.Void](`document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "j", bubbles: true}))`))
	const marked = `document.querySelector(".waits.at a").textContent`
	h.do(until(marked + ` === "in-2"`))
	h.must(http.StatusOK, "POST", "/v1/tasks/in-1/cancel", `{}`)
	h.do(until(`!document.body.innerText.includes("in-1")`))
	if at := eval[string](h, marked); at != "in-2" {
		t.Errorf("the mark has moved from in-2 to %s", at)
	}
	asked := eval[int](h, `(() => {
		let asked = 0;
		const was = window.fetch;
		window.fetch = (...args) => { if (args[1]?.method === "POST") asked++; return was(...args); };
		document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "a", repeat: true, bubbles: true}));
		window.fetch = was;
		return asked;
	})()`)
	if asked != 0 {
		t.Error("a key that is held down decides about call after call")
	}
}

// The mark stays with its item while others decide what is before it, however it got there, and what has the focus keeps it. When its own item is
// decided too, the next that is left has the mark.
func TestTheMarkStaysWhileOthersDecide(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	for _, id := range []string{"in-1", "in-2", "in-3", "in-4", "in-5", "in-6", "in-7", "in-8"} {
		h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"`+id+`","agent":"asker","input":"write"}`)
		h.shown("/v1/approvals", id)
	}
	h.do(chromedp.Navigate(h.url + "/inbox"))
	h.shows("in-8")
	const marked = `document.querySelector(".waits.at a").textContent`
	decide := func(ids ...string) {
		h.Helper()
		h.show(false) // one look at the list finds all of them
		for _, id := range ids {
			h.must(http.StatusOK, "POST", "/v1/tasks/"+id+"/approvals", `{"decision":"deny","call":"call_1_1"}`)
		}
		h.show(true)
		for _, id := range ids {
			h.do(until(`![...document.querySelectorAll(".waits a")].some((a) => a.textContent === "` + id + `")`))
		}
	}
	stays := func(how, want, focus string) {
		h.Helper()
		if at := eval[string](h, marked); at != want {
			t.Errorf("%s: the mark has moved from %s to %s", how, want, at)
		}
		if has := eval[string](h, `document.activeElement.closest(".waits")?.querySelector("a").textContent ?? "nothing"`); has != focus {
			t.Errorf("%s: the focus is in %s, want %s", how, has, focus)
		}
	}
	h.do(chromedp.KeyEvent("jj"), until(marked+` === "in-3"`))
	decide("in-1")
	stays("by the keys", "in-3", "in-3")
	h.do(chromedp.Click(`(//section[.//a[.="in-4"]]//input)[1]`), chromedp.KeyEvent("because"))
	decide("in-2")
	stays("by the pointer", "in-4", "in-4")
	if text := eval[string](h, `document.activeElement.value`); text != "because" {
		t.Errorf("what was typed is %q", text)
	}
	decide("in-3", "in-4")
	stays("decided elsewhere, with one before it", "in-5", "in-5")
	h.do(chromedp.KeyEvent("j"), until(marked+` === "in-6"`), chromedp.Click("main h1"), until(`!document.activeElement.closest(".waits")`))
	decide("in-5", "in-6")
	if at := eval[string](h, marked); at != "in-7" {
		t.Errorf("without the focus: the next one that is left is in-7, and the mark is at %s", at)
	}
}

const twice = `
scenes:
  - match: paint
    turns:
      - {text: "", calls: [{name: ask_human, arguments: {question: "Which colour?"}}]}
      - {text: "", calls: [{name: ask_human, arguments: {question: "Which wall?"}}]}
      - {text: Painted.}
  - match: write
    turns:
      - {text: x, calls: [{name: write_file, arguments: {filePath: one.txt, content: first}}]}
      - {text: x, calls: [{name: write_file, arguments: {filePath: two.txt, content: second}}]}
      - {text: Written.}
`

// What was typed for one question or call is not sent for the next one of the same run.
func TestWhatWasTypedIsForOneQuestion(t *testing.T) {
	h := open(t, settings.AuthOff, twice)
	h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"q","agent":"curious","input":"paint"}`)
	h.do(chromedp.Navigate(h.url + "/inbox"))
	h.shows("Which colour?")
	h.do(chromedp.SendKeys("textarea", "blue"))
	h.show(false)
	h.must(http.StatusOK, "POST", "/v1/tasks/q/answers", `{"text":"green"}`)
	h.shown("/v1/tasks/q/why", "Which wall?")
	h.show(true)
	h.shows("Which wall?")
	if text := eval[string](h, `document.querySelector("textarea").value`); text != "" {
		t.Errorf("the answer to the next question is %q already", text)
	}

	h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"w","agent":"asker","input":"write"}`)
	h.do(chromedp.Navigate(h.url+"/runs/w"), chromedp.Click(button("Change the arguments")), chromedp.WaitVisible("textarea[name=arguments]"))
	h.show(false)
	h.must(http.StatusOK, "POST", "/v1/tasks/w/approvals", `{"decision":"approve","call":"call_1_1"}`)
	h.shown("/v1/tasks/w/why", "call_2_1")
	h.show(true)
	h.do(until(`document.querySelector(".waits pre")?.textContent.includes("two.txt")`))
	if args := eval[string](h, `document.querySelector("textarea[name=arguments]")?.value ?? ""`); args != "" {
		t.Errorf("the next call would be made with %s", args)
	}
}
