package browser_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/settings"
)

// picture keeps what the page shows, whole, if LONGSHORE_SCREENSHOTS names a folder.
func (h *hall) picture(name string) {
	h.Helper()
	folder := os.Getenv("LONGSHORE_SCREENSHOTS")
	if folder == "" {
		return
	}
	image, err := chromedp.Run(h.tab(), chromedp.FullScreenshot(100))
	if err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(fmt.Sprintf("%s/flow_%s.png", folder, name), image, 0o600); err != nil {
		h.Error(err)
	}
}

// submit hands in a task past the browser; with wait it has ended afterwards.
func (h *hall) submit(task string, wait bool) {
	h.Helper()
	path, want := "/v1/tasks", http.StatusAccepted
	if wait {
		path, want = "/v1/tasks?wait=60s", http.StatusOK
	}
	if status, answer := h.ask("POST", path, task); status != want {
		h.Fatalf("%d %v", status, answer)
	}
}

// fill puts a text into a field in place of what it holds.
func (h *hall) fill(selector, text string) {
	h.Helper()
	h.do(chromedp.WaitVisible(selector))
	eval[string](h, fmt.Sprintf(`((e) => { Object.getOwnPropertyDescriptor(Object.getPrototypeOf(e), "value").set.call(e, %q);
		e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})); return e.value; })(document.querySelector(%q))`, text, selector))
}

const harbours = `
scenes:
  - match: harbour
    tools: [read_file]
    turns:
      - {text: "I write it down.", calls: [{name: write_file, arguments: {filePath: haiku.txt, content: "grey"}}]}
      - {text: "grey harbour morning at sea"}
  - match: harbour
    turns:
      - {text: "not played"}
      - {text: "grey harbour evening at sea"}
`

// A run is forked from a step with another agent, then with other instructions, and seen beside its fork: what both share, where they
// part, and the words that differ.
func TestForkAndCompare(t *testing.T) {
	h := open(t, settings.AuthOff, harbours)
	for _, agent := range []string{`{"name":"sailor","tools":["read_file","write_file"]}`, `{"name":"mate","tools":["write_file"]}`} {
		name := strings.Split(agent, `"`)[3]
		if status, answer := h.ask("PUT", "/v1/agents/"+name, agent); status != http.StatusOK {
			t.Fatalf("%d %v", status, answer)
		}
	}
	h.submit(`{"id":"first","agent":"sailor","input":"a harbour"}`, true)
	h.do(chromedp.Navigate(h.url + "/runs/first"))
	h.shows("grey harbour morning at sea")
	h.do(chromedp.Click(button("Fork")))
	h.fill("dialog input[name=agent]", "mate")
	h.picture("fork")
	h.do(chromedp.Click(`dialog button.main`))
	h.shows("The fork is")
	h.do(chromedp.Click(`//a[normalize-space()="Compare the two"]`))
	h.shows("The first step is the same in both")
	h.shows("They differ from step 2 on.")
	h.shows("grey harbour evening at sea")
	h.picture("compare")
	marks := `[...document.querySelectorAll("mark")].map((m) => m.className + " " + m.textContent).sort().join()`
	if got := eval[string](h, marks); got != "added evening,removed morning" {
		t.Errorf("marked are %s", got)
	}
	if steps := eval[string](h, `[...document.querySelectorAll("tr")].find((r) => r.textContent.startsWith("Steps")).innerText`); strings.Join(strings.Fields(steps), " ") != "Steps 2 2 the same" {
		t.Errorf("the steps of both: %q", steps)
	}

	h.do(chromedp.Navigate(h.url + "/runs/first"))
	h.shows("grey harbour morning at sea")
	h.do(chromedp.Click(button("Fork")), chromedp.Click(button("Change the instructions")))
	h.fill("dialog textarea[name=instructions]", "Write as a sailor would.")
	h.do(chromedp.Click(`dialog button.main`))
	h.shows("The fork is")
	h.do(chromedp.Click(`//a[normalize-space()="Compare the two"]`))
	h.shows("No step differs.")
	h.shows("sailor_draft@")
	if _, draft := h.ask("GET", "/v1/agents/sailor_draft", ""); draft["instructions"] != "Write as a sailor would." {
		t.Errorf("the draft is %v", draft)
	}
	if _, agent := h.ask("GET", "/v1/agents/sailor", ""); agent["instructions"] == "Write as a sailor would." {
		t.Error("the agent itself was changed")
	}
}

// An agent is changed, tried as a draft, changed again, and saved as a new revision; until then it stays as it was.
func TestEditAnAgentAndTryIt(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	_, before := h.ask("GET", "/v1/agents/asker", "")
	h.do(chromedp.Navigate(h.url+"/try?agent=asker"), chromedp.Click(button("Change the agent")))
	h.shows("the agent itself stays as it is")
	h.fill("textarea[name=definition]", `{"name": "asker", "tools": [`)
	h.shows("did not find expected node content")
	h.fill("textarea[name=definition]", `{"name": "asker", "tools": ["write_file"], "instructions": "Write at once."}`)
	h.shows("No mistakes.")
	h.fill("textarea[name=task]", "write a haiku")
	h.picture("try")
	h.do(chromedp.Click(button("Run the changed agent")))
	h.shows("Done: see haiku.txt") // without an approval: it is the draft that ran
	if _, agent := h.ask("GET", "/v1/agents/asker", ""); agent["revision"] != before["revision"] {
		t.Errorf("the agent changed: %v", agent)
	}
	if _, draft := h.ask("GET", "/v1/agents/asker_draft", ""); draft["expires"] == nil {
		t.Errorf("the draft would stay: %v", draft)
	}
	h.do(chromedp.Click(button("Save as a new revision")))
	h.shows("Saved as revision")
	_, agent := h.ask("GET", "/v1/agents/asker", "")
	if agent["instructions"] != "Write at once." || agent["approve"] != nil || agent["expires"] != nil || agent["revision"] == before["revision"] {
		t.Errorf("saved is %v", agent)
	}
}

// A dead letter is edited and sent again; the new run ends well.
func TestRedriveAnEditedDeadLetter(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request("tasks.normal.default.bad", []byte(`{"input":"write","agent":"nowhere"}`), patience); err != nil {
		t.Fatal(err)
	}
	h.do(chromedp.Click(link("Dead letters")))
	h.shows("unknown_agent")
	h.do(chromedp.Click(`main td button.quiet`))
	h.fill("dialog textarea", `{"input":"write","agent":"default"}`)
	h.picture("redrive")
	h.do(chromedp.Click(button("Send again")))
	h.shows("Sent again as")
	h.shows("No dead letters")
	h.do(chromedp.Click(link("Runs")), chromedp.Click(`//tr[.//span[normalize-space()="completed"]]//a`))
	h.shows("Done: see haiku.txt")
}

// A call is denied with a note, which the agent is told.
func TestDenyWithANote(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.submit(`{"id":"d","agent":"asker","input":"write"}`, false)
	h.do(chromedp.Click(link("Inbox")))
	h.shows("grey harbour morning") // the arguments
	h.fill("input[name=reason]", "Call the file poem.txt")
	h.picture("deny")
	h.do(chromedp.Click(button("Deny")))
	h.shows("Nothing waits for you")
	h.do(chromedp.Navigate(h.url + "/runs/d"))
	h.shows("denied")
	h.shows("Call the file poem.txt")
	_, result := h.ask("GET", "/v1/tasks/d/result?transcript=true", "")
	if text := fmt.Sprint(result["transcript"]); !strings.Contains(text, "Call the file poem.txt") {
		t.Errorf("the agent was told %s", text)
	}
}

// Many runs are labelled, submitted again and cancelled at once, each after the number is confirmed.
func TestManyAtOnce(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.submit(`{"id":"one","input":"hi"}`, true)
	h.submit(`{"id":"two","input":"hi"}`, true)
	h.submit(`{"id":"three","agent":"asker","input":"write"}`, false)
	choose := func(ids ...string) {
		h.Helper()
		h.do(chromedp.Navigate(h.url + "/runs"))
		for _, id := range ids {
			h.do(chromedp.Click(`input[aria-label="Choose run ` + id + `"]`))
		}
	}
	choose("one", "two", "three")
	h.shows("3 chosen")
	h.do(chromedp.Click(button("Label 3")))
	h.shows("This label will be added to 3 runs")
	h.fill("input[name=label]", "season=autumn")
	h.picture("many")
	h.do(chromedp.Click(button("Label 3 runs")))
	h.shows("3 runs labelled")
	for _, id := range []string{"one", "two", "three"} {
		if _, said := h.ask("GET", "/v1/tasks/"+id+"/feedback", ""); !strings.Contains(fmt.Sprint(said), "season:autumn") {
			t.Errorf("the feedback on %s is %v", id, said)
		}
	}
	choose("one", "two", "three")
	h.do(chromedp.Click(button("Retry 2")))
	h.shows("The tasks of 2 runs will be submitted again")
	h.do(chromedp.Click(button("Retry 2 runs")))
	h.shows("2 runs submitted again")
	h.shows("5 found")
	choose("three")
	h.do(chromedp.Click(button("Cancel 1")))
	h.shows("1 run will be cancelled")
	h.do(chromedp.Click(button("Cancel 1 run")))
	h.shows("1 run cancelled")
	if _, result := h.ask("GET", "/v1/tasks/three/result", ""); result["status"] != "cancelled" {
		t.Errorf("the run is %v", result)
	}
}

// A run is copied as a command, a request, a check by replay and a case of a suite; columns are chosen, and keys are told and work.
func TestCopyColumnsAndKeys(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.submit(`{"id":"c","input":"write it's","labels":{"team":"quay"}}`, true)
	h.do(chromedp.Navigate(h.url + "/runs/c"))
	h.shows("Done: see haiku.txt")
	h.do(chromedp.Click(button("Copy as command")))
	h.shows(`longshore submit --agent 'default' --label 'team=quay' 'write it'\''s'`)
	h.shows("longshore replay c --check")
	h.shows("curl -s " + h.url + "/v1/tasks -H")
	h.do(chromedp.Click(`dialog button[aria-label=Close]`), chromedp.Click(button("Add to a suite")))
	h.shows(`input: "write it's"`)
	h.shows(`tools: ["write_file"]`)

	h.do(chromedp.Navigate(h.url+"/runs"), chromedp.Click(button("Columns")), chromedp.Click(`//dialog//label[contains(.,"Labels")]/input`))
	h.do(chromedp.Click(`dialog button[aria-label=Close]`))
	h.shows("team=quay")
	if query := eval[string](h, "location.search"); !strings.Contains(query, "labels") {
		t.Errorf("the address does not hold the columns: %s", query)
	}
	h.do(chromedp.KeyEvent("/"))
	if at := eval[bool](h, `document.activeElement.hasAttribute("data-search")`); !at {
		t.Error("/ does not lead to the search")
	}
	eval[string](h, `(document.activeElement.blur(), "")`)
	h.do(chromedp.KeyEvent("?"))
	h.shows("next and previous row")
}

// A call is approved with other arguments: the file holds what the person wrote, and the run shows both.
func TestApproveWithOtherArguments(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.submit(`{"id":"a","agent":"asker","input":"write"}`, false)
	h.do(chromedp.Click(link("Inbox")))
	h.shows("grey harbour morning")
	h.do(chromedp.Click(button("Change the arguments")))
	h.fill("textarea[name=arguments]", "{")
	h.shows("This is not a JSON object.")
	h.fill("textarea[name=arguments]", `{"filePath":"haiku.txt","content":7}`)
	h.do(chromedp.Click(button("Approve with these arguments")))
	h.shows("arguments: do not fit the tool write_file")
	h.fill("textarea[name=arguments]", `{"filePath":"haiku.txt","content":"blue harbour evening"}`)
	h.picture("edit_arguments")
	h.do(chromedp.Click(button("Approve with these arguments")))
	h.shows("Nothing waits for you")
	h.do(chromedp.Navigate(h.url + "/runs/a"))
	h.shows("Done: see haiku.txt")
	h.shows("with other arguments")
	h.shows("blue harbour evening")
	h.shows("grey harbour morning") // what the model wrote
	h.picture("edited_arguments")
	h.do(chromedp.Navigate(h.url+"/runs/a?tab=files"), chromedp.Click(button("haiku.txt")))
	h.shows("blue harbour evening")
}

// A run whose call was approved is forked from there: the fork asks again, is denied beside the first, and both are compared.
func TestForkWithAnotherDecision(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.submit(`{"id":"a","agent":"asker","input":"write"}`, false)
	h.do(chromedp.Navigate(h.url + "/runs/a"))
	h.do(chromedp.Click(button("Approve")))
	h.shows("Done: see haiku.txt")
	h.do(chromedp.Click(button("Fork")))
	h.fill("dialog input[name=at]", "1")
	h.do(chromedp.WaitVisible("dialog select[name=call]"))
	h.fill("dialog select[name=call]", eval[string](h, `document.querySelector("dialog select[name=call]").options[1].value`))
	h.picture("fork_again")
	h.do(chromedp.Click(`dialog button.main`))
	h.shows("It asks again")
	h.do(chromedp.Click(`//a[normalize-space()="Compare the two"]`))
	h.do(chromedp.Click(button("Deny")))
	h.shows("They differ from step 1 on.")
	h.shows("User denied approval")
	h.picture("compare_decisions")
}
