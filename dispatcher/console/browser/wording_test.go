package browser_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages/control"
)

// A question says itself, since when it waits and until when, as times are said elsewhere.
func TestAQuestionSaysTimesAsPeopleDo(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"q","agent":"curious","input":"paint"}`)
	h.do(chromedp.Click(link("Inbox")))
	h.shows("Without an answer the run continues in 23 h.")
	card := eval[string](h, `document.querySelector(".waits").innerText`)
	if !strings.Contains(card, "\nWhich colour?\n") || strings.Contains(card, "Z at most") {
		t.Errorf("the question is shown as\n%s", card)
	}
	if n := eval[int](h, `document.querySelectorAll(".waits time[title][datetime]").length`); n != 2 {
		t.Errorf("%d times have their exact form", n)
	}
}

// A batch of which nothing was run says why, and what to do; there are no results to get and no lines to run again.
func TestABatchOfInvalidLines(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	for _, b := range []struct{ id, lines, says, others string }{
		{"none", "{\n{}\n", "2 of 2 lines are invalid, so nothing was run: correct the lines and submit the batch again.", ""},
		{"some", "{\"custom_id\":\"1\",\"input\":\"hi\"}\n{}\n", "1 of 2 lines is invalid, so nothing was run: correct the lines and submit the batch again, or skip the invalid ones.", "With --skip-invalid the valid lines run."},
	} {
		h.batch(b.id, "skipInvalid=false", b.lines)
		h.do(chromedp.Navigate(h.url + "/batches"))
		h.shows("nothing was run")
		h.do(chromedp.Navigate(h.url + "/batches/" + b.id))
		h.shows(b.says)
		page := eval[string](h, `document.querySelector("main").innerText`)
		for text, want := range map[string]bool{
			"longshore batch submit FILE --id=" + b.id: true, "Line": true, b.others: true, "--skip-invalid": b.others != "",
			"Retry the failed lines": false, "batch results": false, "0 of": false,
		} {
			if strings.Contains(page, text) != want {
				t.Errorf("that %s is shown: want %v, of\n%s", text, want, page)
			}
		}
	}
}

// The dialog for a new key offers the roles that the API takes for its tenant, and no others; one that was ticked before does not count.
func TestANewKeyOffersWhatTheAPITakes(t *testing.T) {
	h := open(t, settings.AuthOn, script)
	client, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	admin, _, err := client.Keys().Create(t.Context(), dispatcher.KeySpec{Tenant: control.AllTenants, Roles: []control.AccessRole{control.RoleAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	h.signInWith(admin)
	h.shows("Overview")
	offered := func() (roles []string) {
		return eval[[]string](h, `[...document.querySelectorAll("dialog fieldset label > span")].map((e) => e.textContent)`)
	}
	const tenant = "dialog label:nth-of-type(2) input"
	h.do(chromedp.Navigate(h.url+"/keys"), chromedp.Click(button("New key")))
	for _, of := range []string{"acme", "*"} {
		h.fill(tenant, of)
		h.shows(map[string]string{"acme": "Agents and prompts belong to all tenants", "*": "Submitters and approvers act within one tenant"}[of])
		var want []string
		for _, r := range control.AccessRoles() {
			if control.CheckAccess(of, []control.AccessRole{r}) == nil {
				want = append(want, string(r))
			}
		}
		slices.Sort(want)
		got := offered()
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("of %s it offers %v, want %v", of, got, want)
		}
	}
	h.do(chromedp.Click(`//dialog//label[normalize-space(span)="author"]`))
	h.fill(tenant, "a b")
	h.shows("Use 1 to 64 characters")
	h.fill(tenant, "acme")
	h.do(chromedp.Click(`//dialog//label[normalize-space(span)="submitter"]`), chromedp.Click(button("Make")))
	h.shows("Copy it now")
	h.do(chromedp.Click(`//dialog//header/button`))
	h.shows("viewer, submitter")

	h.do(chromedp.Navigate(h.url+"/keys?tenant=acme"), chromedp.Click(button("New key")))
	h.shows("It is for the tenant acme.")
	h.do(chromedp.Click(button("Make")))
	h.shows("Copy it now")
}

// A click on a bar says what it is, and leaves the timeline where it is: the next click meets the bar that one sees.
func TestAClickLeavesTheTimelineInPlace(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.submit(`{"id":"r","input":"write a haiku"}`, true)
	h.do(chromedp.Navigate(h.url+"/runs/r?tab=timeline"), chromedp.WaitVisible(".bar"))
	h.settled()
	const places = `[...document.querySelectorAll(".bar")].map((e) => { const r = e.getBoundingClientRect(); return [r.x, r.y, r.width].map(Math.round).join(" "); }).join(", ")`
	before := eval[string](h, places)
	for i := range eval[int](h, `document.querySelectorAll(".bar").length`) {
		h.do(chromedp.Click(fmt.Sprintf(`(//button[contains(@class, "bar")])[%d]`, i+1)))
		h.do(chromedp.Poll[chromedp.Void](fmt.Sprintf(`document.querySelectorAll(".bar")[%d].ariaPressed === "true" && document.querySelector(".chosen") !== null`, i), chromedp.WithPollingTimeout(patience)))
		if after := eval[string](h, places); after != before {
			t.Errorf("bar %d: the bars move from %s to %s", i, before, after)
		}
	}
}
