package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

const (
	patience = 2 * time.Minute       // how long anything may take that must come
	again    = 20 * time.Millisecond // before something is asked again
)

const script = `
scenes:
  - match: write
    turns:
      - {text: "I will **write** it.", calls: [{name: write_file, arguments: {filePath: haiku.txt, content: "grey harbour morning"}}]}
      - {text: "Done: see haiku.txt"}
  - match: paint
    turns:
      - {text: "", calls: [{name: ask_human, arguments: {question: "Which colour?"}}]}
      - {text: Painted.}
  - match: fail
    turns: [{error: {class: invalid_request, message: it broke}}]
  - match: ""
    turns: [{text: hello}]
`

// hall is a fleet and a browser that looks at it.
type hall struct {
	*testing.T

	dev  *fleet.Dev
	dir  string // its data
	url  string
	tab  func() context.Context // what stands for the tab
	mu   sync.Mutex
	said []string // errors of the page, and requests to other places
}

func open(t *testing.T, auth, play string) *hall {
	t.Helper()
	scenes, err := scripted.Parse([]byte(play))
	if err != nil {
		t.Fatal(err)
	}
	return openOn(t, auth, scripted.New(scenes))
}

// openOn is open with a model.
func openOn(t *testing.T, auth string, provider model.Provider) *hall {
	t.Helper()
	return openWith(t, settings.Dev{Serving: settings.Serving{Access: settings.Access{Auth: auth}}}, provider)
}

// openWith is openOn with other settings.
func openWith(t *testing.T, with settings.Dev, provider model.Provider) *hall {
	t.Helper()
	chromium := os.Getenv("LONGSHORE_CHROMIUM")
	if chromium == "" {
		t.Skip("left out: LONGSHORE_CHROMIUM names no browser")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	with.Slots, with.MaxAttempts, with.Console = 8, 5, "on"
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: dir, Abrupt: true, Version: "0.0.0", Agents: "testdata", Log: slog.New(slog.DiscardHandler),
		Dev: with, Parts: fleet.Parts{Model: provider},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &hall{T: t, dev: dev, dir: dir, url: "http://" + dev.API}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
	run, closeAll := chromedp.NewExecAllocator(t.Context(), options...)
	tab, closeTab := chromedp.NewContext(run)
	h.tab = func() context.Context { return tab }
	t.Cleanup(func() {
		closeTab()
		closeAll()
		http.DefaultClient.CloseIdleConnections()
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
		for _, what := range h.said {
			t.Error(what)
		}
	})
	if err := chromedp.Listen(tab, h.hear); err != nil {
		t.Fatal(err)
	}
	h.do(chromedp.Navigate(h.url + "/"))
	return h
}

// hear notes what a page must not do.
func (h *hall) hear(event any) {
	note := func(format string, args ...any) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.said = append(h.said, fmt.Sprintf(format, args...))
	}
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		note("the page threw %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			note("the page says: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, h.url+"/") && !strings.HasPrefix(url, "http://"+h.dev.API+"/") && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
			note("the page asks %s", url)
		}
	}
}

func (h *hall) do(steps ...chromedp.Action[chromedp.Void]) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.tab(), patience)
	defer cancel()
	err := chromedp.Do(ctx, steps...)
	for err != nil && len(steps) == 1 && ctx.Err() == nil && strings.Contains(err.Error(), "Cannot find context") { // the page was left meanwhile
		err = chromedp.Do(ctx, steps...)
	}
	if err != nil {
		text, _ := chromedp.Run(h.tab(), chromedp.Evaluate[string]("document.body.innerText"))
		h.Fatalf("%v; the page shows:\n%.2000s", err, text)
	}
}

// eval is what an expression is in the page; a promise is awaited.
func eval[T any](h *hall, expression string) T {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.tab(), patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		h.Fatalf("%s: %v", expression, err)
	}
	return v
}

// button is one by what is on it.
func button(text string) string { return fmt.Sprintf(`//button[normalize-space()=%q]`, text) }
func link(text string) string   { return fmt.Sprintf(`//nav//a[normalize-space()=%q]`, text) }

// until waits until something holds in the page. It asks by a timer, for a hidden tab draws no frames.
func until(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(again), chromedp.WithPollingTimeout(patience))
}

// shows waits until the page has a text.
func (h *hall) shows(text string) {
	h.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		h.Fatal(err)
	}
	h.do(until("document.body.innerText.includes(" + string(quoted) + ")"))
}

// ask makes a request past the browser.
func (h *hall) ask(method, path, body string, headers ...string) (status int, answer map[string]any) {
	h.Helper()
	req, err := http.NewRequestWithContext(h.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		h.Fatal(err)
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &answer); err != nil {
			h.Fatalf("%s %s: %s", method, path, data)
		}
	}
	return resp.StatusCode, answer
}

// From the first visit to a finished run it is three clicks.
func TestFirstVisit(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.shows("Nothing has run yet")
	h.do(
		chromedp.Click(`//main//a[normalize-space()="Try an agent here"]`),
		chromedp.Click("textarea"),
		chromedp.SendKeys("textarea", "write a haiku"),
		chromedp.Click(button("Run")),
	)
	h.shows("Done: see haiku.txt")
	h.shows("completed")
	h.do(chromedp.Click(link("Runs")))
	h.shows("1 found")
	h.do(chromedp.Click(`//main//td[normalize-space()="default"]`)) // the row opens, wherever it is clicked
	h.shows("It is the text of step 2.")                            // all of it: the tabs stay where they are now
	h.do(chromedp.Click(link("Files")))
	h.shows("haiku.txt")
	h.do(chromedp.Click(button("haiku.txt")))
	h.shows("grey harbour morning")
}

// A call that waits is approved in the inbox, and the run ends.
func TestApproveInTheInbox(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	if status, answer := h.ask("POST", "/v1/tasks", `{"id":"a","agent":"asker","input":"write"}`); status != http.StatusAccepted {
		t.Fatalf("%d %v", status, answer)
	}
	h.do(chromedp.Click(link("Inbox")))
	h.shows("write_file")
	h.do(chromedp.Click(button("Approve")))
	h.shows("Nothing waits for you")
	if _, answer := h.ask("GET", "/v1/tasks/a/result", ""); answer == nil {
		t.Error("there is no answer")
	}
	h.do(chromedp.Navigate(h.url + "/runs/a"))
	h.shows("Done: see haiku.txt")
	h.shows("approved")
}

// A question is answered in the inbox, and the run ends.
func TestAnswerInTheInbox(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	if status, answer := h.ask("POST", "/v1/tasks", `{"id":"q","agent":"curious","input":"paint"}`); status != http.StatusAccepted {
		t.Fatalf("%d %v", status, answer)
	}
	h.do(chromedp.Click(link("Inbox")))
	h.shows("Which colour?")
	h.do(chromedp.SendKeys("textarea", "blue"), chromedp.Click(button("Answer")))
	h.shows("Nothing waits for you")
	h.do(chromedp.Navigate(h.url + "/runs/q"))
	h.shows("Painted.")
}

// A viewer signs in, sees, cannot change, and signs out.
func TestAViewer(t *testing.T) {
	h := open(t, settings.AuthOn, script)
	client, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key := func(role control.AccessRole) string {
		k, _, err := client.Keys().Create(t.Context(), dispatcher.KeySpec{Tenant: "acme", Roles: []control.AccessRole{role}})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if status, answer := h.ask("POST", "/v1/tasks?wait=60s", `{"id":"r","input":"hi"}`, "Authorization", "Bearer "+key(control.RoleSubmitter)); status != http.StatusOK {
		t.Fatalf("%d %v", status, answer)
	}
	h.shows("Sign in to Longshore")
	h.do(chromedp.SendKeys("input[name=key]", "lsk_wrong"), chromedp.Click(button("Sign in")))
	h.shows("the token is not valid")
	eval[string](h, `document.querySelector("input[name=key]").value = ""`)
	h.do(chromedp.SendKeys("input[name=key]", key(control.RoleViewer)), chromedp.Click(button("Sign in")))
	h.shows("Newest runs")
	h.do(chromedp.Navigate(h.url + "/lanes"))
	h.shows("The queue is empty")
	h.do(chromedp.Navigate(h.url + "/"))
	h.shows("Newest runs")
	h.settled()
	if refused := eval[[]string](h, `[...document.querySelectorAll(".failure")].map((e) => e.innerText)`); len(refused) > 0 {
		t.Errorf("the overview of a viewer of one tenant shows %q", refused)
	}
	h.do(chromedp.Navigate(h.url + "/runs/r"))
	h.shows("hello")
	if !eval[bool](h, `[...document.querySelectorAll("button")].find((b) => b.textContent === "Fork").disabled`) {
		t.Error("a viewer may fork")
	}
	if kept := eval[string](h, `document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)`); kept != "{}{}" {
		t.Errorf("the page keeps %q", kept)
	}
	if status := eval[int](h, `fetch("/v1/tasks", {method: "POST", body: '{"input":"x"}'}).then((r) => r.status)`); status != http.StatusForbidden {
		t.Errorf("a viewer submits: %d", status)
	}
	h.do(chromedp.Click(button("Sign out")))
	h.shows("Sign in to Longshore")
	h.do(chromedp.Navigate(h.url + "/runs/r"))
	h.shows("Sign in to Longshore")
}

// Each view opens, in light and dark, wide and narrow; none is wider than the window, also at 200 %, none has a fault that axe-core
// finds, and the keyboard reaches all of it. Screenshots go to LONGSHORE_SCREENSHOTS.
func TestViewsOpen(t *testing.T) {
	axe := axe(t)
	h := open(t, settings.AuthOff, script)
	h.furnish()
	for page, text := range pages() {
		h.look("light", 1280, 1)
		h.do(chromedp.Navigate(h.url + "/" + page))
		h.shows(text)
		h.settled()
		h.tabbed("/" + page)
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390} {
				h.look(theme, width, 1)
				h.fits("/"+page, width)
				h.photograph(page, theme, width)
				if axe != "" {
					h.accessible(fmt.Sprintf("/%s, %s, %d", page, theme, width), axe)
				}
			}
		}
		h.look("light", 640, 2) // 1280 at 200 %
		h.fits("/"+page+" at 200 %", 640)
	}
}
