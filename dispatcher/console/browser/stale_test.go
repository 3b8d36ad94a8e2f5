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
