package browser_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// dispatch starts a dispatcher in a process of its own, beside those of the hall, and returns what kills it.
func (h *hall) dispatch(addr, nats string) (kill func()) {
	h.Helper()
	self, err := os.Executable()
	if err != nil {
		h.Fatal(err)
	}
	var said bytes.Buffer
	p := exec.Command(self)
	p.Dir = h.TempDir()
	p.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.Dir, "TMPDIR=" + os.TempDir(), roleVariable + "=dispatcher", "NATS_URL=" + nats, "LONGSHORE_HTTP_ADDR=" + addr,
		"LONGSHORE_KEYSET=" + h.dir + ".keyset", "LONGSHORE_MEMORY=off", "REDIS_URL=none", "LONGSHORE_INDEX=" + filepath.Join(p.Dir, "index.db"),
	}
	p.Stdout, p.Stderr = &said, &said
	if err := p.Start(); err != nil {
		h.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	killed := false
	kill = func() {
		if killed {
			return
		}
		killed = true
		_ = p.Process.Kill() // it may have ended
		<-ended
	}
	h.Cleanup(func() {
		kill()
		if h.Failed() {
			h.Logf("the dispatcher says: %s", said.String())
		}
	})
	return kill
}

// freeAddr is an address of this machine on which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// visit opens a page, again and again until its dispatcher answers.
func (h *hall) visit(path string) {
	h.Helper()
	visit := chromedp.Navigate(h.url + path)
	late := time.After(patience)
	for {
		_, err := chromedp.Run(h.tab(), visit)
		if err == nil {
			return
		}
		select {
		case <-late:
			h.Fatal(err)
		case <-time.After(again):
		}
	}
}

// A dispatcher that is killed while a run is watched: the page says so, and when there is one again it has each line once.
func TestTheDispatcherIsKilled(t *testing.T) {
	const lines = 80
	var play strings.Builder
	play.WriteString("scenes:\n  - match: count\n    turns:\n")
	for i := range lines {
		fmt.Fprintf(&play, "      - {text: \"line %d of them\", delay: 250ms, calls: [{name: list_files, arguments: {}}]}\n", i)
	}
	play.WriteString("      - {text: \"the last line\"}\n")
	h := open(t, settings.AuthOff, play.String())
	inside, addr := h.url, freeAddr(t)
	h.must(http.StatusOK, "PUT", "/v1/agents/counter", `{"name":"counter","tools":["list_files"],"maxSteps":100,"repeatLimit":1000}`)
	h.url = "http://" + addr
	kill := h.dispatch(addr, h.dev.NATS)
	h.visit("/runs")
	h.shows("Submit a task")
	h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"c","agent":"counter","input":"count"}`)
	h.do(chromedp.Navigate(h.url + "/runs/c"))
	h.shows("line 3 of them")
	kill()
	h.shows("The dispatcher does not answer")
	if !eval[bool](h, `document.body.innerText.includes("line 3 of them")`) {
		t.Error("the page does not keep what it shows")
	}
	h.ends(inside, "c")
	h.dispatch(addr, h.dev.NATS)
	h.shows("completed")
	h.do(until(`!document.body.innerText.includes("The dispatcher does not answer")`))
	if told := eval[bool](h, `document.body.innerText.includes("The connection was lost")`); told {
		t.Error("the page still says that the connection was lost")
	}
	h.do(chromedp.Evaluate[chromedp.Void]("scrollTo(0, 0)"))
	seen := eval[map[string]int](h, `(async () => {
		const seen = {}, steps = new Set();
		for (let y = 0; y <= document.documentElement.scrollHeight; y += 300) {
			scrollTo(0, y);
			await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
			for (const s of document.querySelectorAll("section.turn[id]")) {
				if (steps.has(s.id)) continue;
				steps.add(s.id);
				const line = s.querySelector(".markdown")?.textContent.trim() ?? "";
				seen[line] = (seen[line] ?? 0) + 1;
			}
		}
		return seen;
	})()`)
	for i := range lines {
		if n := seen[fmt.Sprintf("line %d of them", i)]; n != 1 {
			t.Errorf("line %d is there %d times", i, n)
		}
	}
	if len(seen) != lines+1 {
		t.Errorf("there are %d lines: %v", len(seen), seen)
	}
}

// signIn signs in with a new key of a role.
func (h *hall) signIn(role control.AccessRole) {
	h.Helper()
	h.signInWith(h.key(role))
}

// key makes one of a role.
func (h *hall) key(role control.AccessRole) string {
	h.Helper()
	client, err := h.dev.Client(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	key, _, err := client.Keys().Create(h.Context(), dispatcher.KeySpec{Tenant: "acme", Roles: []control.AccessRole{role}})
	if err != nil {
		h.Fatal(err)
	}
	return key
}

func (h *hall) signInWith(key string) {
	h.Helper()
	h.shows("Sign in to Longshore")
	h.do(chromedp.SendKeys("input[name=key]", key), chromedp.Click(button("Sign in")))
}

// A session that has ended leads to the sign-in, and that back to where one was.
func TestTheSessionEnds(t *testing.T) {
	h := open(t, settings.AuthOn, script)
	h.signIn(control.RoleViewer)
	h.shows("Overview")
	const where = "/runs?status=failed&since=168"
	h.do(chromedp.Navigate(h.url + where))
	h.shows("No run matches")
	if _, err := chromedp.Call(h.tab(), network.ClearBrowserCookies, struct{}{}); err != nil { // as a browser does when their time is over
		t.Fatal(err)
	}
	h.signIn(control.RoleViewer)
	h.shows("No run matches")
	if at := eval[string](h, "location.pathname + location.search"); at != where {
		t.Errorf("after the sign-in it is %s", at)
	}
}

// A session that ends in the middle of an action, in a page or in a dialog, keeps what was typed for the same user; another one sees
// nothing of it.
func TestTheSessionEndsWhileOneTypes(t *testing.T) {
	h := open(t, settings.AuthOn, script)
	key := h.key(control.RoleAdmin)
	h.signInWith(key)
	h.shows("Overview")
	expire := func() {
		if _, err := chromedp.Call(h.tab(), network.ClearBrowserCookies, struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	typed := func(field string) string {
		return eval[string](h, `document.querySelector(`+quote(t, field)+`)?.value ?? "gone"`)
	}
	const task = `textarea[name=task]`
	h.do(chromedp.Navigate(h.url+"/try?agent=asker"), chromedp.SendKeys(task, "write a haiku"))
	expire()
	h.do(chromedp.Click(button("Run")))
	h.shows("Your session has ended")
	if eval[bool](h, `document.body.innerText.includes("Choose an agent")`) {
		t.Error("the page is still seen without a session")
	}
	h.signInWith(key)
	h.shows("Choose an agent")
	if got := typed(task); got != "write a haiku" {
		t.Errorf("in the page %q is left", got)
	}
	h.do(chromedp.Click(button("Run")))
	h.shows("Send a message") // it works

	const message = `dialog textarea[aria-label=Message]`
	h.do(chromedp.Click(button("Send a message")), chromedp.SendKeys(message, "in grey"))
	expire()
	h.do(chromedp.Click(button("Send")))
	h.signInWith(key)
	h.do(chromedp.WaitVisible(message))
	if got := typed(message); got != "in grey" {
		t.Errorf("in the dialog %q is left", got)
	}
	expire()
	h.do(chromedp.Click(button("Send")))
	h.signIn(control.RoleViewer)
	h.shows("Choose an agent")
	if got := typed(message); got != "gone" {
		t.Errorf("another user sees %q", got)
	}
}

// Two tabs: what one decides the other sees, and both are signed out at once.
func TestTwoTabs(t *testing.T) {
	h := open(t, settings.AuthOn, script)
	h.signIn(control.RoleAdmin)
	h.shows("Overview")
	if status := eval[int](h, `fetch("/v1/tasks", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"id":"a","agent":"asker","input":"write"}'}).then((r) => r.status)`); status != http.StatusAccepted {
		t.Fatal(status)
	}
	two := h.another()
	for _, tab := range []*hall{h, two} {
		tab.do(chromedp.Navigate(h.url + "/inbox"))
		tab.shows("write_file")
	}
	two.do(chromedp.Click(button("Approve")))
	h.shows("Nothing waits for you")
	h.do(chromedp.Navigate(h.url + "/agents")) // which asks nothing by itself
	h.shows("What it does")
	two.do(chromedp.Click(button("Sign out")))
	h.shows("Sign in to Longshore")
}

// held is a model that says nothing until it is let go.
type held struct {
	model.Provider

	until chan struct{}
}

func (p held) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		select {
		case <-p.until:
			p.Provider.Stream(ctx, r)(yield)
		case <-ctx.Done():
			yield(model.Delta{}, context.Cause(ctx))
		}
	}
}

// Text is shown while it is written.
func TestTextGrows(t *testing.T) {
	scenes, err := scripted.Parse([]byte(`scenes: [{match: slowly, turns: [{text: "` + strings.Repeat("word by word ", 30) + `at last", chunk: 8, pause: 40ms}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	p := held{scripted.New(scenes), make(chan struct{})}
	h := openOn(t, settings.AuthOff, p)
	h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"s","input":"slowly"}`)
	h.do(chromedp.Navigate(h.url + "/runs/s"))
	h.shows("running")
	h.settled()
	h.do(chromedp.Evaluate[chromedp.Void](`{
		window.lengths = new Set();
		new MutationObserver(() => { const t = document.querySelector("section.turn[id] .cursor")?.textContent; if (t) window.lengths.add(t.length); })
			.observe(document.body, {subtree: true, childList: true, characterData: true});
	}`))
	close(p.until)
	h.shows("at last")
	h.shows("Result")
	if n := eval[int](h, "window.lengths.size"); n < 3 {
		t.Errorf("the text was seen at %d lengths while it was written", n)
	}
	if eval[bool](h, `!!document.querySelector(".cursor")`) {
		t.Error("it is still shown as being written")
	}
}

// A hidden tab asks for nothing and keeps no connection; when it is shown again it continues.
func TestAHiddenTabCostsNothing(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"a","agent":"asker","input":"write"}`)
	two := h.another()
	two.do(chromedp.Navigate(h.url + "/inbox"))
	two.shows("write_file")
	asked := two.listen()
	h.do(chromedp.Navigate("about:blank"))
	ours := h.listen()
	h.do(chromedp.Navigate(h.url + "/runs/a"))
	h.shows("Approve")
	ours.until(h, "a run that is watched", func(open map[network.RequestID]string, _ int) bool { return len(open) > 0 }) // its events
	h.show(false)
	ours.until(h, "the tab is hidden", func(open map[network.RequestID]string, _ int) bool { return len(open) == 0 })
	count := func(a *traffic) int { a.mu.Lock(); defer a.mu.Unlock(); return a.began }
	before, first := count(ours), count(asked)
	asked.until(h, "the other tab", func(_ map[network.RequestID]string, began int) bool { return began >= first+6 }) // it asks for two things every 3 s
	if n := count(ours) - before; n > 0 {
		t.Errorf("the hidden tab has made %d requests", n)
	}
	h.must(http.StatusOK, "POST", "/v1/tasks/a/approvals", `{"decision":"approve","call":"call_1_1"}`)
	h.show(true)
	h.shows("Done: see haiku.txt")

	h.do(chromedp.Navigate(h.url + "/inbox")) // a view that asks again and again
	h.shows("Nothing waits for you")
	h.show(false)
	ours.until(h, "the inbox is hidden", func(open map[network.RequestID]string, _ int) bool { return len(open) == 0 })
	before, first = count(ours), count(asked)
	asked.until(h, "the other tab", func(_ map[network.RequestID]string, began int) bool { return began >= first+6 })
	if n := count(ours) - before; n > 0 {
		t.Errorf("the hidden inbox has made %d requests", n)
	}
}

// show minimizes the window of a tab, or shows it again.
func (h *hall) show(shown bool) {
	h.Helper()
	window, err := chromedp.Call(h.tab(), browser.GetWindowForTarget, browser.GetWindowForTargetParams{})
	if err != nil {
		h.Fatal(err)
	}
	state := browser.WindowStateMinimized
	if shown {
		state = browser.WindowStateNormal
	}
	if _, err := chromedp.Call(h.tab(), browser.SetWindowBounds, browser.SetWindowBoundsParams{WindowID: window.WindowID, Bounds: &browser.Bounds{WindowState: state}}); err != nil {
		h.Fatal(err)
	}
	h.do(until(fmt.Sprintf("document.hidden === %t", !shown)))
}
