package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
)

// An agent is read and written as the file that the agents folder has: its prompt is a block of lines, comments are taken, and what would grow
// without end is refused as it is in a file. A draft and a revision take the same text.
func TestAnAgentIsEditedAsYAML(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	first := h.must(http.StatusOK, "PUT", "/v1/agents/mate", `{"name":"mate","tools":["write_file"],"instructions":"Write at once. 🚢\nThen stop.\n"}`)
	h.must(http.StatusOK, "PUT", "/v1/agents/mate", `{"name":"mate","tools":["write_file"],"instructions":"Write at once. 🚢\nThen rest.\n"}`)
	const area, typed = ".editor textarea", `document.querySelector(".editor textarea").value`
	h.do(chromedp.Navigate(h.url+"/agents/mate"), chromedp.WaitVisible(area))
	text := eval[string](h, typed)
	if !strings.HasPrefix(text, "apiVersion: longshore.run/v1\nkind: Agent\nmetadata:\n  name: mate\n") || !strings.Contains(text, "  instructions: |\n    Write at once. 🚢\n    Then rest.\n") {
		t.Fatalf("the editor shows\n%s", text)
	}
	h.do(chromedp.Click(fmt.Sprintf(`//main//td/button[normalize-space()="%v"]`, first["revision"])))
	h.shows(fmt.Sprintf("Revision %v, and the current one", first["revision"]))
	if was := eval[string](h, `document.querySelector(".sides .card").innerText`); !strings.Contains(was, "Then stop.\n") || !strings.HasPrefix(was, "apiVersion") {
		t.Errorf("the revision before is shown as\n%s", was)
	}

	var bomb strings.Builder
	bomb.WriteString("a: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for c := 'a'; c < 'i'; c++ {
		fmt.Fprintf(&bomb, "%c: &%c [%s*%c]\n", c+1, c+1, strings.Repeat("*"+string(c)+", ", 9), c)
	}
	h.fill(area, bomb.String())
	h.do(chromedp.WaitVisible(".problems .bad"))
	if said := eval[string](h, `document.querySelector(".problems").innerText`); !strings.Contains(said, "alias") {
		t.Errorf("of a bomb it says %q", said)
	}
	h.fill(area, "# Who writes.\n"+strings.Replace(text, "Then rest.", "Then sing. # not a comment", 1))
	h.shows("No mistakes.")
	h.do(chromedp.Click(button("Store")))
	h.shows("Stored as revision")
	if _, agent := h.ask("GET", "/v1/agents/mate", ""); agent["instructions"] != "Write at once. 🚢\nThen sing. # not a comment\n" {
		t.Errorf("stored is %v", agent)
	}

	h.do(chromedp.Navigate(h.url+"/try?agent=mate"), chromedp.Click(button("Change the agent")), chromedp.WaitVisible(area))
	text = eval[string](h, typed)
	if !strings.Contains(text, "  instructions: |\n") {
		t.Fatalf("what is tried is\n%s", text)
	}
	h.fill(area, strings.Replace(text, "Then sing.", "Then dance.", 1))
	h.shows("No mistakes.")
	h.fill("textarea[name=task]", "write a haiku")
	h.do(chromedp.Click(button("Run the changed agent")))
	h.shows("Done: see haiku.txt")
	if _, draft := h.ask("GET", "/v1/agents/mate_draft", ""); !strings.Contains(draft["instructions"].(string), "Then dance.") {
		t.Errorf("the draft is %v", draft)
	}
	h.do(chromedp.Click(button("Save as a new revision")))
	h.shows("Saved as revision")
	if _, agent := h.ask("GET", "/v1/agents/mate", ""); !strings.Contains(agent["instructions"].(string), "Then dance.") || agent["expires"] != nil {
		t.Errorf("saved is %v", agent)
	}
}
