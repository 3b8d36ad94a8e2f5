package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages/control"
)

// A live list that loses the row with the focus gives it to the next row, at the last one to the row before, and never to nothing; one that
// gets more rows leaves it where it is.
func liveListsByKeyboard(t *testing.T, met *kinds) {
	h := open(t, settings.AuthOff, script)
	for _, name := range []string{"pause-1", "pause-2", "pause-3"} {
		h.must(http.StatusOK, "POST", "/v1/pauses", `{"kind":"tenant","name":"`+name+`","reason":"it is tried out"}`)
	}
	for _, id := range []string{"in-1", "in-2", "in-3"} {
		h.submit(`{"id":"`+id+`","agent":"asker","input":"write"}`, false)
		h.shown("/v1/approvals", id)
	}
	k := h.keyboard(met)
	is := func(when, expression, want string) {
		t.Helper()
		k.held(when)
		if got := eval[string](h, expression); got != want {
			t.Errorf("%s the focus is on %q, not %q: %s", when, got, want, k.focus())
		}
	}
	const row = `document.activeElement.textContent + " of " + document.activeElement.closest("tr")?.cells[0].textContent`
	k.visit("/quotas")
	to("Resume | pause-2")(k)
	for _, s := range []struct{ gone, next string }{{"pause-2", "Resume of tenant pause-3"}, {"pause-3", "Resume of tenant pause-1"}} {
		h.must(http.StatusOK, "DELETE", "/v1/pauses/tenant/"+s.gone, "")
		gone(s.gone)(k)
		is("without "+s.gone, row, s.next)
	}
	h.must(http.StatusOK, "DELETE", "/v1/pauses/tenant/pause-1", "")
	gone("pause-1")(k)
	is("without rows", `String(document.querySelector("main").contains(document.activeElement))`, "true")

	const section = `document.activeElement.textContent + " in " + document.activeElement.closest("section")?.querySelector("a").textContent`
	k.visit("/inbox")
	to("Deny | in-2")(k)
	h.must(http.StatusOK, "POST", "/v1/tasks/in-2/cancel", `{}`)
	gone("in-2")(k)
	is("without in-2", section, "in-3 in in-3")
	keys("k")(k)
	is("after k", section, "in-1 in in-1")
	if at := eval[string](h, `document.querySelector(".waits.at a").textContent`); at != "in-1" {
		t.Errorf("after k the mark is at %s", at)
	}

	k.visit("/runs")
	to("in-1")(k)
	h.submit(`{"id":"new","input":"hi"}`, true)
	h.shows("new")
	is("with another row", `document.activeElement.textContent`, "in-1")
	k.reach(fields, "Agent")
	h.do(chromedp.KeyEvent("ask")) // which is not all
	h.submit(`{"id":"newer","input":"hi"}`, true)
	h.shows("newer")
	is("while one types", `document.activeElement.value`, "ask")
}

// shown waits until an answer of the API has a text.
func (h *hall) shown(path, text string) {
	h.Helper()
	(&keyboard{hall: h}).proves(deed{what: "the answer of " + path, effect: tells(path, text)})
}

// Signing in, making and revoking keys, choosing a tenant, signing in again where one was, and signing out, by keyboard alone.
func keysByKeyboard(t *testing.T, met *kinds) {
	h := open(t, settings.AuthOn, script)
	client, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	admin, _, err := client.Keys().Create(t.Context(), dispatcher.KeySpec{Tenant: "*", Roles: []control.AccessRole{control.RoleAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	k := h.keyboard(met)
	k.grant()
	var made string
	const field = "API key or JWT"
	focused := func(want string) func(*hall) string {
		return shown(`document.activeElement.name || document.activeElement.textContent`, want)
	}
	k.work([]deed{
		{"/", "a wrong key is refused", []stroke{sees("Sign in to Longshore"), write(field, "lsk_wrong"), sees("the token is not valid")}, focused("key")},
		{"", "a person signs in", []stroke{write(field, admin), sees("Overview")}, nil},
		{"keys", "a key is made", []stroke{
			back("New key", "Back"), press("New key"), write("Name", "for the quay"), write("Tenant", "acme"), tick("viewer"), tick("submitter"), tick("approver"), tick("operator"), tick("admin"), write("Tenant", "*"), gone("submitter"), tick("author"), tick("granter"), write("Tenant", "acme"), sees("submitter"),
			press("Make"), sees("Copy it now"), press("Copy"), func(k *keyboard) { made = eval[string](k.hall, `navigator.clipboard.readText()`) }, press("Close"), sees("for the quay"),
		}, func(h *hall) string { return with(made, http.StatusOK)(h) }},
		{"", "a key is revoked", []stroke{back("Revoke | for the quay", "Back"), press("Revoke | for the quay"), press("Revoke"), gone("for the quay")}, func(h *hall) string { return with(made, http.StatusUnauthorized)(h) }},
		{"runs", "a tenant is chosen", []stroke{write("Tenant", "acme")}, at("/runs?tenant=acme")},
		{"try", "a session ends, and begins again where one was", []stroke{
			write("Task", "write it"), to("Run"), func(k *keyboard) {
				if _, err := chromedp.Call(k.tab(), network.ClearBrowserCookies, struct{}{}); err != nil {
					k.Fatal(err)
				}
			}, press("Run"), sees("Your session has ended"), write(field, admin), press("Sign in"), sees("Choose an agent"),
		}, focused("Run")},
		{"", "a person signs out", []stroke{press("Sign out"), sees("Sign in to Longshore")}, all(focused("key"), shown(`document.cookie`, ""))},
	})
	if status := eval[int](h, `fetch("/v1/caller").then((r) => r.status)`); status != http.StatusUnauthorized {
		t.Errorf("after signing out it is %d", status)
	}
	k.note()
}

// with is a status of a request with a key.
func with(key string, want int) func(*hall) string {
	return func(h *hall) string {
		if status, answer := h.ask("GET", "/v1/caller", "", "Authorization", "Bearer "+key); status != want {
			return fmt.Sprintf("it is %d %v", status, answer)
		}
		return ""
	}
}

// The keys that the console tells lead to the views that it names, and so does each link of the menu.
func viewsByKeyboard(t *testing.T, met *kinds) {
	h := open(t, settings.AuthOff, script)
	k := h.keyboard(met)
	k.work([]deed{{"/", "the first run is tried", []stroke{sees("Nothing has run yet"), follow("/try")}, at("/try")}})
	k.visit("/audit")
	for _, s := range []stroke{to("Overview"), keys("?"), sees("next and previous row")} {
		s(k)
	}
	told := eval[[][]string](h, `[...document.querySelectorAll("dialog .keys tr")].map((r) => [r.cells[0].textContent, r.cells[1].textContent]).filter(([key]) => /^g .$/.test(key))`)
	press("Close")(k)
	views := eval[[]string](h, `[...document.querySelectorAll("nav.menu li a")].map((a) => a.textContent.trim())`)
	if len(told) != len(views) {
		t.Errorf("keys are told for %d of %d views: %v", len(told), len(views), told)
	}
	at := func(name string) {
		t.Helper()
		h.do(until(`document.querySelector("nav.menu li a[aria-current]")?.textContent.trim() === ` + quote(t, name) + ` && document.querySelector("main h1") && document.getElementById("main").contains(document.activeElement)`))
	}
	for _, view := range told {
		keys(strings.ReplaceAll(view[0], " ", ""))(k)
		at(view[1])
	}
	for _, name := range views {
		press(name)(k)
		at(name)
	}
}

// What a view shows when it has nothing, and when it is refused, has no fault that axe-core finds.
func TestStatesAreAccessible(t *testing.T) {
	axe := axe(t)
	h := open(t, settings.AuthOff, script)
	var status atomic.Int64
	h.refusing(&status)
	for _, view := range []string{"", "runs", "inbox", "try", "agents", "prompts", "sessions", "batches", "schedules", "lanes", "dead-letters", "memory", "tools", "suites", "workspaces", "workers", "quotas", "audit", "runs/none", "compare/none/neither"} {
		for _, refused := range []int64{0, http.StatusInternalServerError} {
			status.Store(refused)
			h.look("light", 1280, 1)
			h.do(chromedp.Navigate(h.url+"/"+view), chromedp.WaitVisible("main h1"))
			h.settled()
			if refused != 0 {
				h.shows(sentence)
			}
			if eval[int](h, `document.querySelectorAll("h1").length`) != 1 {
				t.Errorf("/%s has no heading of its own", view)
			}
			for _, theme := range []string{"light", "dark"} {
				h.look(theme, 1280, 1)
				if axe != "" {
					h.accessible(fmt.Sprintf("/%s, refused %d, %s", view, refused, theme), axe)
				}
			}
		}
	}
}
