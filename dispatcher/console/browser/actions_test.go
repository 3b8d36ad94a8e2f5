package browser_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
)

const sharing = `
scenes:
  - match: share
    turns:
      - {text: "", calls: [{name: delegate, arguments: {tasks: [{agent: default, input: hi}]}}]}
      - {text: Shared.}
`

// provision gives the fleet what deeds are done to: each takes something of its own.
func (h *hall) provision() {
	h.Helper()
	for _, agent := range []string{
		`{"name":"tried","tools":["write_file"],"instructions":"Write."}`, `{"name":"sharer","tools":["delegate"],"delegate":{"agents":["default"]}}`,
	} {
		h.must(http.StatusOK, "PUT", "/v1/agents/"+strings.Split(agent, `"`)[3], agent)
	}
	for _, task := range []string{
		`{"id":"one","input":"plain hi","labels":{"set":"many"}}`, `{"id":"two","input":"plain hi","labels":{"set":"many"}}`,
		`{"id":"parent","agent":"sharer","input":"share"}`,
		`{"id":"planned","agent":"tried","input":"plan","plan":{"steps":[{"id":"save","description":"Write it","tool":"write_file","args":{"filePath":"a.txt","content":"a"}}]}}`,
		`{"id":"case","input":"hi","labels":{"evalSuite":"greetings","evalCase":"short"}}`,
	} {
		h.submit(task, true)
	}
	h.submit(`{"id":"stopped","agent":"asker","input":"write","labels":{"set":"many"}}`, false)
	for _, id := range []string{"steered", "edited", "denied", "cancelled", "box-1", "box-2", "box-3", "box-4"} {
		h.submit(`{"id":"`+id+`","agent":"asker","input":"write"}`, false)
	}
	for _, id := range []string{"asked", "box-5", "box-6"} {
		h.submit(`{"id":"`+id+`","agent":"curious","input":"paint"}`, false)
	}
	h.batch("mixed", "", `{"custom_id":"well","input":"hi"}`+"\n"+`{"custom_id":"badly","input":"fail"}`+"\n")
	h.batch("long", "", `{"custom_id":"waits","agent":"asker","input":"write"}`+"\n")
	h.publish("tasks.normal.default.worse", `{"input":"hi","agent":"unknown"}`)
	h.must(http.StatusOK, "PUT", "/v1/memory/notes/items", `{"items":[{"id":"berth-4","text":"Berth 4 takes ships","subject":"berths","agent":"tried","tags":["port"],"source":{"run":"r","step":1}},{"id":"tide","text":"High tide is at nine"}]}`)
}

// api is true of an answer of the API.
func api(path string, holds func(answer map[string]any) bool) func(*hall) string {
	return func(h *hall) string {
		status, answer := h.ask("GET", path, "")
		if status == http.StatusOK && holds(answer) {
			return ""
		}
		return fmt.Sprintf("GET %s: %d %.1000v", path, status, answer)
	}
}

// tells is an answer of the API with all of some texts in it, and without each that has an exclamation mark before it.
func tells(path string, texts ...string) func(*hall) string {
	return api(path, func(answer map[string]any) bool {
		all := fmt.Sprint(answer)
		for _, text := range texts {
			if without, not := strings.CutPrefix(text, "!"); strings.Contains(all, without) == not {
				return false
			}
		}
		return true
	})
}

// none is an answer of the API that there is no such thing.
func none(path string) func(*hall) string {
	return func(h *hall) string {
		if status, answer := h.ask("GET", path, ""); status != http.StatusNotFound {
			return fmt.Sprintf("GET %s: %d %.1000v", path, status, answer)
		}
		return ""
	}
}

// at is the address that the page has.
func at(address string) func(*hall) string {
	return shown(`decodeURIComponent(location.pathname + location.search)`, address)
}

// shown is a part of the page.
func shown(expression, want string) func(*hall) string {
	return func(h *hall) string {
		if got := eval[string](h, `(() => { try { return String(`+expression+`); } catch (e) { return String(e); } })()`); got != want {
			return fmt.Sprintf("%s is %q, not %q", expression, got, want)
		}
		return ""
	}
}

// lists is true when the rows of the page are what the API lists.
func lists(query string) func(*hall) string {
	return func(h *hall) string {
		_, answer := h.ask("GET", "/v1/tasks?limit=50&"+query, "")
		runs, _ := answer["runs"].([]any)
		want := make([]string, len(runs))
		for i, r := range runs {
			want[i] = fmt.Sprint(r.(map[string]any)["id"])
		}
		got := eval[[]string](h, `[...document.querySelectorAll("main tr[data-href] a.id")].map((a) => a.textContent)`)
		if len(want) == 0 || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) || !strings.Contains(eval[string](h, `location.search`), query) {
			return fmt.Sprintf("the page lists %v, the API %v", got, want)
		}
		return ""
	}
}

// copied is what the clipboard holds a text of.
func copied(text string) func(*hall) string {
	return func(h *hall) string {
		if got := eval[string](h, `navigator.clipboard.readText()`); !strings.Contains(got, text) {
			return fmt.Sprintf("the clipboard holds %.200q", got)
		}
		return ""
	}
}

// all is several effects.
func all(effects ...func(*hall) string) func(*hall) string {
	return func(h *hall) string {
		for _, e := range effects {
			if instead := e(h); instead != "" {
				return instead
			}
		}
		return ""
	}
}

const many = "runs?label=set%3Dmany"

// runDeeds are those of the list of runs and of a run.
func runDeeds() []deed {
	return []deed{
		{"runs", "the keys are listed", []stroke{to("Columns"), keys("?"), sees("next and previous row"), press("Close")}, shown(`document.activeElement.textContent`, "Columns")},
		{"", "columns are chosen", []stroke{press("Columns"), tick("Labels"), tick("Tokens"), press("Close")}, at("/runs?columns=id,status,agent,input,steps,cost,time,began,labels")},
		{"runs", "a text is searched", []stroke{keys("\t/"), write("Text", "plain")}, lists("q=plain")},
		{"runs", "a status is chosen", []stroke{choose("Status", "completed")}, lists("status=completed")},
		{"", "a time is chosen", []stroke{choose("Submitted", "last hour")}, at("/runs?status=completed&since=1")},
		{"runs", "an agent is chosen", []stroke{write("Agent", "curious")}, lists("agent=curious")},
		{"runs", "a label is chosen", []stroke{write("Label", "set=many")}, lists("label=set%3Dmany")},
		{"runs", "an error code is chosen", []stroke{write("Error code", "cancelled"), sees("No run matches")}, at("/runs?code=cancelled")},
		{many, "rows are walked through, and one is opened", []stroke{to("Columns"), keys("jjjk"), keys("\r"), sees("Result")}, func(h *hall) string {
			_, answer := h.ask("GET", "/v1/tasks?label=set%3Dmany", "")
			return at("/runs/" + fmt.Sprint(answer["runs"].([]any)[1].(map[string]any)["id"]))(h)
		}},
		{
			many, "two runs are labelled",
			[]stroke{tick("Choose run one"), tick("Choose run two"), back("Label 2", "Back"), press("Label 2"), write("Label", "season=autumn"), press("Label 2 runs"), sees("2 runs labelled")},
			all(tells("/v1/tasks/one/feedback", "season:autumn"), tells("/v1/tasks/two/feedback", "season:autumn")),
		},
		{"", "a choice is dropped", []stroke{tick("Choose run one"), press("Choose none"), gone("1 chosen")}, shown(`document.querySelectorAll("main td input:checked").length`, "0")},
		{
			"", "a run is submitted again",
			[]stroke{tick("Choose run one"), back("Retry 1", "Back"), press("Retry 1"), press("Retry 1 run"), sees("1 run submitted again")},
			api("/v1/tasks?q=plain", func(a map[string]any) bool { return a["found"] == 3.0 }),
		},
		{many, "a run is cancelled", []stroke{tick("Choose run stopped"), back("Cancel 1", "Back"), press("Cancel 1"), press("Cancel 1 run"), sees("1 run cancelled")}, tells("/v1/tasks/stopped/result", "status:cancelled")},
		{many, "two runs are compared", []stroke{tick("Choose run one"), tick("Choose run two"), press("Compare"), sees("No step differs")}, at("/compare/one/two")},
		{"", "what both have is unfolded", []stroke{press("~The first step is the same")}, shown(`document.querySelector("details").open`, "true")},

		{"runs/r", "the parts of a run are opened", []stroke{press("Timeline"), press("Records"), press("Logs"), press("Raw"), sees("Copy JSON")}, at("/runs/r?tab=raw")},
		{"", "a run is copied as JSON", []stroke{press("Copy JSON")}, copied(`"id": "r"`)},
		{"", "the conversation is opened", []stroke{press("Conversation"), press("~write_file")}, shown(`document.querySelector(".call details").open`, "true")},
		{"", "the timeline is zoomed", []stroke{press("Timeline"), press("Zoom in"), press("Zoom in"), press("Zoom out")}, shown(`document.querySelector(".timeline").style.width`, "200%")},
		{"", "a bar of the timeline is chosen", []stroke{press("~write_file"), sees("grey harbour morning")}, shown(`document.querySelector(".bar[aria-pressed=true]").textContent.split(" ")[0]`, "write_file")},
		{"", "the step of a bar is opened", []stroke{press("step-1"), sees("Result")}, all(at("/runs/r"), shown(`document.activeElement.id`, "step-1"))},
		{"", "a record is opened", []stroke{press("Records"), press("~1")}, shown(`document.querySelector("details.card").open`, "true")},
		{"", "files after a step are listed", []stroke{press("Files"), sees("haiku.txt"), write("After step", "1")}, shown(`document.querySelector("main td button").textContent`, "haiku.txt")},
		{"", "a file is opened", []stroke{press("in Name"), sees("grey harbour morning"), press("Close")}, shown(`document.activeElement.textContent`, "haiku.txt")},
		{"", "a file is downloaded", []stroke{download("Download", "haiku.txt")}, nil},
		{"runs/planned", "the plan is opened", []stroke{press("Plan"), sees("Write it")}, at("/runs/planned?tab=plan")},
		{"runs/parent", "the children are opened", []stroke{press("Children")}, at("/runs/parent?tab=children")},

		{"runs/r", "a run is rated well", []stroke{back("Rate", "Close"), press("Rate"), write("Comment", "clear"), press("Good"), sees("Thank you")}, tells("/v1/tasks/r/feedback", "comment:clear", "score:1")},
		{"", "a run is rated badly", []stroke{press("Rate"), write("Comment", "too short"), press("Bad")}, tells("/v1/tasks/r/feedback", "comment:too short", "score:-1")},
		{"", "a run is checked by replay", []stroke{press("Check by replay"), sees("The same "), press("Close the check")}, shown(`String(document.querySelector(".checked"))`, "null")},
		{"", "a run is copied as a command", []stroke{press("Copy as command"), press("Copy"), to("Close"), press("Close")}, copied("longshore submit")},
		{"", "a run is copied as a case", []stroke{press("Add to a suite"), write("Name of the case", "tide"), press("Copy"), press("Close")}, copied(`name: "tide"`)},
		{
			"", "a run is forked with another agent and model",
			[]stroke{back("Fork", "Close"), press("Fork"), write("From step", "1"), write("Model", "demo/demo"), write("Agent", "tried"), press("Fork"), sees("The fork is"), press("Compare the two"), sees("They differ")},
			func(h *hall) string {
				return tells("/v1/tasks/"+eval[string](h, `location.pathname.split("/")[3]`), "agent:tried")(h)
			},
		},
		{"runs/r", "a run is forked with other instructions", []stroke{press("Fork"), press("Change the instructions"), write("Instructions", "Be brief."), press("Fork"), sees("The fork is"), press("~01"), sees("forked from"), press("compare"), sees("Compare two runs")}, tells("/v1/agents/default_draft", "Be brief.")},

		{"runs/steered", "a message is sent to a run", []stroke{back("Send a message", "Close"), press("Send a message"), write("Message", "in grey"), press("Send"), sees("Sent")}, tells("/v1/tasks/steered/log", "in grey")},
		{"", "a call is approved", []stroke{press("Approve"), sees("Done: see haiku.txt")}, tells("/v1/tasks/steered/files", "haiku.txt")},
		{"runs/edited", "a call is approved with other arguments", []stroke{
			press("Change the arguments"), press("Leave them as they are"), press("Change the arguments"), write("Arguments", `{"filePath":"sea.txt","content":"blue"}`), write("Reason (optional)", "shorter"),
			press("Approve with these arguments"), sees("Done: see haiku.txt"),
		}, all(tells("/v1/tasks/edited/files", "sea.txt"), tells("/v1/tasks/edited/log", "shorter"))},
		{"", "a run is forked where it asked", []stroke{press("Fork"), write("From step", "1"), choose("In this step", "Keep its reply"), press("Fork"), sees("It asks again"), press("Compare the two"), sees("Approve")}, nil},
		{
			"", "a call is approved beside another",
			[]stroke{write("Reason (optional)", "as before"), press("Approve"), sees("Done: see haiku.txt")},
			func(h *hall) string {
				return tells("/v1/tasks/"+eval[string](h, `location.pathname.split("/")[3]`)+"/log", "as before")(h)
			},
		},
		{"runs/denied", "a call is denied", []stroke{write("Reason (optional)", "not now"), press("Deny"), sees("Done: see haiku.txt")}, tells("/v1/tasks/denied/result?transcript=true", "not now")},
		{"runs/asked", "a question is answered", []stroke{write("Answer", "blue"), press("Answer"), sees("Painted.")}, tells("/v1/tasks/asked/result?transcript=true", "blue")},
		{"runs/cancelled", "a run is cancelled from its page", []stroke{press("Cancel"), sees("cancelled")}, tells("/v1/tasks/cancelled/result", "status:cancelled")},
	}
}

// authorDeeds are those of agents, prompts, and what is tried.
func authorDeeds() []deed {
	return []deed{
		{"agents/tried", "an agent is edited and stored", []stroke{
			write("Definition", "name: tried\rtool: x"), sees("unknown field"), press("Line 2"), press("Undo"), sees("No mistakes."),
			write("Definition", "name: tried\rmaxSteps: 7"), sees("No mistakes."), press("Store"), sees("Stored as revision"),
		}, tells("/v1/agents/tried", "maxSteps:7")},
		{"", "an earlier revision is opened", []stroke{press("in Revision"), sees("the current one")}, nil},
		{"try", "an agent is chosen, changed and tried", []stroke{
			choose("Agent", "tried"), press("Change the agent"), write("Definition", "name: tried\rtool: x"), sees("unknown field"), press("Line 2"), press("Undo"), sees("No mistakes."),
			write("Definition", "name: tried\rtools: [write_file]"), sees("No mistakes."), upload("Files", "note.txt"), write("Task", "write it"), press("Run the changed agent"), sees("Done: see haiku.txt"),
		}, all(tells("/v1/agents/tried_draft", "write_file"), tells("/v1/agents/tried", "maxSteps:7"), func(h *hall) string {
			return tells("/v1/tasks/"+eval[string](h, `new URLSearchParams(location.search).get("run")`)+"/files", "note.txt", "haiku.txt")(h)
		})},
		{"", "what was tried is saved", []stroke{press("Save as a new revision"), sees("Saved as revision")}, tells("/v1/agents/tried", "write_file", "!maxSteps:7")},
		{"", "the run that was tried is opened", []stroke{follow("/runs/…")}, nil},
		{"prompts/greeting", "a prompt is edited and stored", []stroke{
			write("Text", "Hello {name"), sees("is not closed"), press("Line 1"), press("Undo"), write("Text", "Good day {name}"), sees("No mistakes."), press("Store"), sees("Stored as version"), becomes(`document.querySelector("main .facts dd").textContent === "2"`),
		}, tells("/v1/prompts/greeting", "Good day {name}")},
		{"", "a prompt is rendered", []stroke{write("Variables, as JSON", `{"name":"Ann"}`), press("Render"), sees("Good day Ann")}, nil},
		{"", "an earlier version is opened", []stroke{press("in Version")}, nil},
		{"tools", "tools are searched", []stroke{write("Text", "write_f")}, shown(`[...document.querySelectorAll("main tbody a")].map((a) => a.textContent.includes("read_")).includes(true)`, "false")},
	}
}

// keptDeeds are those of what is kept beside runs.
func keptDeeds() []deed {
	return []deed{
		{"sessions/s", "a session is forgotten", []stroke{press("Forget"), sees("Forgotten")}, none("/v1/sessions/s")},
		{"batches/mixed", "failed lines are submitted again", []stroke{press("Copy"), press("Retry the failed lines"), sees("A new batch")}, api("/v1/batches", func(a map[string]any) bool { return len(a["batches"].([]any)) == 5 })},
		{"runs", "older runs are listed, and the newest again", []stroke{press("Older"), sees("Newest"), press("Newest"), sees("Older")}, at("/runs")},
		{"batches/long", "a batch is cancelled", []stroke{press("Copy"), press("Cancel"), sees("It will be cancelled")}, tells("/v1/batches/long", "status:cancel")},
		{"schedules/nightly", "a schedule is paused", []stroke{press("Pause"), sees("Resume")}, tells("/v1/schedules/nightly", "paused:true")},
		{"", "a schedule is resumed", []stroke{press("Resume"), sees("Pause")}, tells("/v1/schedules/nightly", "!paused:true")},
		{"", "a schedule is run now", []stroke{press("Run now"), sees("Its task was submitted")}, tells("/v1/schedules/nightly", "run:")},
		{"", "the run of a schedule is opened", []stroke{follow("/runs/…")}, nil},
		{"dead-letters", "dead letters are searched", []stroke{write("Agent", "unknown"), write("Error code", "unknown_agent")}, all(at("/dead-letters?agent=unknown&code=unknown_agent"), shown(`document.querySelectorAll("main tbody tr").length`, "2"))},
		{"dead-letters", "a dead letter is removed", []stroke{back("in Number", "Close"), press("in Number"), press("Remove"), sees("Removed"), rows(1)}, api("/v1/dead-letters", func(a map[string]any) bool { return len(a["letters"].([]any)) == 1 })},
		{"", "a dead letter is edited and sent again", []stroke{press("in Number"), write("Task", `{"input":"redriven","agent":"default"}`), press("Send again"), sees("No dead letters")}, tells("/v1/tasks?q=redriven", "status:completed")},
		{
			"memory/notes", "items are searched",
			[]stroke{write("Search", "ships"), write("Agent", "tried"), write("About", "berths"), write("Tag", "port"), sees("berth-4")},
			all(at("/memory/notes?q=ships&agent=tried&subject=berths&tag=port"), shown(`document.querySelectorAll("main tbody tr").length`, "1")),
		},
		{"memory/notes", "an item is opened", []stroke{back("in Item", "Close")}, nil},
		{"", "the run that an item is from is opened", []stroke{press("berth-4"), press("r"), sees("Result")}, at("/runs/r")},
		{"memory/notes", "a choice of items is dropped", []stroke{tick("Choose item tide"), press("Choose none"), gone("1 chosen")}, nil},
		{"", "an item is removed", []stroke{tick("Choose item tide"), back("Remove 1", "Back"), press("Remove 1"), press("Remove 1 item"), sees("Removed"), gone("High tide")}, tells("/v1/memory/notes/items", "berth-4", "!tide")},
		{"workspaces", "a workspace is removed", []stroke{back("Remove", "Back"), press("Remove"), press("Remove"), sees("No named workspaces"), press("Copy")}, api("/v1/workspaces", func(a map[string]any) bool { l, _ := a["workspaces"].([]any); return len(l) == 0 })},
	}
}

// operatorDeeds are those of quotas, pauses, the inbox and workers.
func operatorDeeds() []deed {
	var first, second string
	told := func(to *string) stroke {
		return func(k *keyboard) {
			k.Helper()
			k.do(chromedp.WaitVisible(".waits.at a"))
			*to = eval[string](k.hall, `document.querySelector(".waits.at a").textContent`)
		}
	}
	decided := func(run *string) stroke {
		return func(k *keyboard) { k.Helper(); gone("in " + *run + ".")(k) }
	}
	const waiting = 6 // of eleven calls five are decided
	return []deed{
		{"quotas", "a quota is set", []stroke{
			back("New quota", "Back"), press("New quota"), choose("Kind", "agent"), choose("Kind", "tenant"), write("Name", "harbour"), write("Runs at once", "3"), write("Runs in the queue", "40"),
			write("Submits a minute", "50"), write("US dollars a day", "6.5"), write("US dollars a month", "70"), write("Weight in the queue", "8"), press("Store"), sees("Runs at once: 3; Runs in the queue: 40"),
		}, tells("/v1/quotas/tenant/harbour", "maxRunning:3", "maxQueued:40", "perMinute:50", "costPerDay:6.5", "costPerMonth:70", "weight:8")},
		{"", "a quota is changed", []stroke{press("Change | acme"), write("US dollars a day", "12"), press("Store"), sees("of $12")}, tells("/v1/quotas/tenant/acme", "costPerDay:12")},
		{"", "something is paused", []stroke{back("Pause something", "Back"), press("Pause something"), choose("Kind", "agent"), write("Name", "tried"), write("Reason", "it is mended"), press("Pause"), sees("it is mended")}, tells("/v1/pauses", "it is mended")},
		{"", "a pause ends", []stroke{press("Resume | it is mended"), gone("it is mended")}, tells("/v1/pauses", "!it is mended", "it is tried out")},
		{"keys", "the command that enables authentication is copied", []stroke{press("Copy")}, copied("LONGSHORE_AUTH=on")},
		{"audit", "the command that verifies the chains is copied", []stroke{press("Copy")}, copied("longshore audit verify")},
		{"", "the span of the overview is chosen", []stroke{keys("go"), press("1 h"), press("7 d"), press("24 h"), sees("The last 24 hours")}, at("/")},
		{"", "the figures of a chart are unfolded", []stroke{press("As a table")}, shown(`document.querySelector("figure details").open`, "true")},

		{"inbox", "a call is approved in the inbox", []stroke{sees("box-6"), write("Reason (optional) | box-3", "as usual"), press("Approve | box-3"), gone("box-3")}, all(tells("/v1/tasks/box-3/files", "haiku.txt"), tells("/v1/tasks/box-3/log", "as usual"))},
		{"", "a call is approved with other arguments in the inbox", []stroke{
			press("Change the arguments | steered"), write("Arguments | steered", `{"filePath":"sea.txt","content":"blue"}`), press("Approve with these arguments | steered"), gone("steered"),
		}, tells("/v1/tasks/steered/files", "sea.txt")},
		{"", "a call is denied in the inbox", []stroke{press("Change the arguments | box-4"), press("Leave them as they are | box-4"), press("Deny | box-4"), gone("box-4")}, tells("/v1/tasks/box-4/result?transcript=true", "User denied approval")},
		{"", "a call is approved by key", []stroke{sees("box-6"), to("box-2"), keys("k"), becomes(`document.activeElement.closest(".waits.at") !== null`), told(&first), keys("a"), decided(&first)}, func(h *hall) string { return tells("/v1/tasks/"+first+"/files", "haiku.txt")(h) }},
		{"", "the next one is denied by key", []stroke{told(&second), keys("d"), decided(&second)}, func(h *hall) string {
			return tells("/v1/tasks/"+second+"/result?transcript=true", "User denied approval")(h)
		}},
		{
			"", "going to another view decides nothing",
			[]stroke{keys("ga"), sees("What it does"), keys("gi"), sees("box-6"), keys("?"), sees("next and previous row"), keys("ad"), press("Close")},
			api("/v1/approvals", func(a map[string]any) bool { return len(a["approvals"].([]any)) == waiting }),
		},
		{"", "a question is answered in the inbox", []stroke{write("Answer | box-5", "blue"), press("Answer | box-5"), gone("box-5")}, tells("/v1/tasks/box-5/result", "Painted.")},
		{"workers", "a worker is drained", []stroke{back("Drain", "Back"), press("Drain"), press("Drain"), sees("It drains")}, api("/v1/workers", func(a map[string]any) bool {
			l, _ := a["workers"].([]any)
			return len(l) == 0 || strings.Contains(fmt.Sprint(l), "draining:true") || strings.Contains(fmt.Sprint(l), "gone:true")
		})},
	}
}

// linkDeeds follow each kind of link that no other deed does, from a page that has it.
func linkDeeds() []deed {
	var deeds []deed
	for _, l := range []struct{ page, to string }{
		{"/?span=7d", "/runs?since"},
		{"/?span=7d", "/runs?since&status"},
		{"/", "/runs?status"},
		{"/", "/runs"},
		{"/", "/runs/…"},
		{"/", "/lanes"},
		{"/", "/workers"},
		{"/", "/inbox"},
		{"/", "/dead-letters"},
		{"/", "/quotas"},
		{"agents", "/agents/…"},
		{"agents/tried", "/runs?agent"},
		{"agents/tried", "/try?agent"},
		{"try?agent=tried", "/agents/…"},
		{"tools", "/tools/…"},
		{"compare/r/a", "/runs/…"},
		{"runs/r", "/agents/…"},
		{"runs/r", "/sessions/…"},
		{"runs/parent?tab=children", "/runs/…"},
		{"dead-letters", "/runs/…"},
		{"memory/notes", "/memory"},
		{"memory/notes", "/runs/…"},
		{"sessions/s", "/runs/…"},
		{"workspaces", "/runs/…?tab"},
		{"inbox", "/runs/…"},
		{"batches", "/batches/…"},
		{"memory", "/memory/…"},
		{"prompts", "/prompts/…"},
		{"schedules", "/schedules/…"},
		{"sessions", "/sessions/…"},
		{"tools/write_file", "/tools"},
		{"tools/write_file", "/agents/…"},
		{"suites", "/suites/…"},
		{"suites/greetings", "/suites"},
		{"suites/greetings", "/runs?label&since"},
		{"suites/greetings", "/runs/…"},
	} {
		deeds = append(deeds, deed{l.page, "a link of " + l.page + " to " + l.to + " is followed", []stroke{follow(l.to)}, nil})
	}
	return deeds
}

// download presses a link to a file, and waits for the browser to fetch it.
func download(control, name string) stroke {
	return func(k *keyboard) {
		k.Helper()
		fetched := make(chan string, 1)
		if err := chromedp.Listen(k.tab(), func(event any) {
			if e, ok := event.(*browser.EventDownloadWillBegin); ok {
				fetched <- e.SuggestedFilename
			}
		}); err != nil {
			k.Fatal(err)
		}
		if _, err := chromedp.Call(k.tab(), browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny, EventsEnabled: new(true)}); err != nil {
			k.Fatal(err)
		}
		press(control)(k)
		select {
		case got := <-fetched:
			if got != name {
				k.Errorf("%s: fetched is %q", k.deed, got)
			}
		case <-time.After(patience):
			k.Errorf("%s: nothing is fetched", k.deed)
		}
	}
}

// upload opens the browser's own dialog of a field for files, and chooses one of that name.
func upload(field, name string) stroke {
	return func(k *keyboard) {
		k.Helper()
		asked := make(chan cdp.BackendNodeID, 1)
		if err := chromedp.Listen(k.tab(), func(event any) {
			if e, ok := event.(*cdppage.EventFileChooserOpened); ok {
				asked <- e.BackendNodeID
			}
		}); err != nil {
			k.Fatal(err)
		}
		if _, err := chromedp.Call(k.tab(), cdppage.SetInterceptFileChooserDialog, cdppage.SetInterceptFileChooserDialogParams{Enabled: true}); err != nil {
			k.Fatal(err)
		}
		file := filepath.Join(k.TempDir(), name)
		if err := os.WriteFile(file, []byte("from a person"), 0o600); err != nil {
			k.Fatal(err)
		}
		k.reach(fields, field)
		k.do(chromedp.KeyEvent(" "))
		select {
		case node := <-asked:
			if _, err := chromedp.Call(k.tab(), dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{file}, BackendNodeID: node}); err != nil {
				k.Fatal(err)
			}
		case <-time.After(patience):
			k.Fatalf("%s: the space bar opens no dialog for files", k.deed)
		}
		k.note()
	}
}

// acting is a keyboard before a fleet that has something for each deed.
func acting(t *testing.T, met *kinds) *keyboard {
	t.Helper()
	h := open(t, settings.AuthOff, sharing+strings.TrimPrefix(script, "\nscenes:"))
	h.furnish()
	h.provision()
	k := h.keyboard(met)
	k.grant()
	return k
}

// What the list of runs and a run offer is done by keyboard alone, and its effect is what the API tells afterwards.
func runsByKeyboard(t *testing.T, met *kinds) {
	acting(t, met).work(runDeeds())
}

// The same of agents, prompts, trying them and suites.
func agentsByKeyboard(t *testing.T, met *kinds) {
	acting(t, met).work(authorDeeds())
}

// The same of sessions, batches, schedules, dead letters, memory and workspaces.
func keptByKeyboard(t *testing.T, met *kinds) {
	k := acting(t, met)
	var quick strings.Builder
	for i := range 55 { // more than a page of the list
		fmt.Fprintf(&quick, `{"custom_id":"quick-%d","input":"hi"}`+"\n", i)
	}
	k.batch("quick", "", quick.String())
	k.work(keptDeeds())
}

// The same of quotas, pauses, the inbox, the overview and workers.
func operatingByKeyboard(t *testing.T, met *kinds) {
	acting(t, met).work(operatorDeeds())
}

// Each page of a fleet that has something of everything is looked at, and its links are followed.
func linksByKeyboard(t *testing.T, met *kinds) {
	k := acting(t, met)
	for page, text := range pages() {
		k.deed = "/" + page + " is looked at"
		k.visit("/" + page)
		sees(text)(k)
	}
	k.work(linkDeeds())
}

// grant lets the pages use the clipboard, as a person allows it.
func (k *keyboard) grant() {
	k.Helper()
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		if _, err := chromedp.Call(k.tab(), browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted, Origin: k.url}); err != nil {
			k.Fatal(err)
		}
	}
}
