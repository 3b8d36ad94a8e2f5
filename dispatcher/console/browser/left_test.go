package browser_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
)

// late holds a request until it is let go.
type late struct {
	mu      sync.Mutex
	method  string // of the next that is held; empty: none
	path    string // how it ends
	lost    bool   // it is refused
	arrived chan struct{}
	hold    chan struct{}
}

// laten puts one before the dispatcher.
func (h *hall) laten() *late {
	l := &late{}
	h.before(func(w http.ResponseWriter, r *http.Request) bool {
		l.mu.Lock()
		fits := r.Method == l.method && strings.HasSuffix(r.URL.Path, l.path)
		if fits {
			l.method = "" // the first alone
		}
		lost, arrived, hold := l.lost, l.arrived, l.hold
		l.mu.Unlock()
		if !fits {
			return false
		}
		close(arrived)
		select {
		case <-hold:
		case <-r.Context().Done():
		}
		if lost {
			http.Error(w, "", http.StatusServiceUnavailable)
		}
		return lost
	})
	return l
}

// next holds the next request that fits. It returns what is closed once that has come, and what lets it go.
func (l *late) next(method, path string, lost bool) (arrived <-chan struct{}, release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.method, l.path, l.lost, l.arrived, l.hold = method, path, lost, make(chan struct{}), make(chan struct{})
	return l.arrived, sync.OnceFunc(func() { close(l.hold) })
}

type actions = []chromedp.Action[chromedp.Void]

// What arrives after a view or a dialog was left changes nothing of what is seen instead: neither the address, nor a dialog, nor the view.
func TestWhatComesLateChangesNothing(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.submit(`{"id":"r","input":"hi"}`, true)
	h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"a","agent":"asker","input":"write"}`)
	h.batch("mixed", "", `{"custom_id":"badly","input":"fail"}`+"\n")
	h.shown("/v1/batches/mixed", "endedAt")
	l := h.laten()
	const (
		shut  = `//dialog//header/button`
		state = `location.pathname + location.search + " " + [...document.querySelectorAll("dialog h2, dialog textarea, main h1, main .failure")].map((e) => e.value ?? e.innerText).join(", ")`
	)
	to := func(view string) actions {
		return actions{chromedp.Click(link(view)), chromedp.WaitVisible(`//main//h1[.="` + view + `"]`)}
	}
	for _, c := range []struct {
		what, page   string
		method, path string // of the request that is late
		ask, leave   actions
		says         string // at the edge of the page, when the answer is there
	}{
		{"a task that is tried", "try?agent=default", "POST", "/v1/tasks", actions{chromedp.SendKeys("textarea[name=task]", "hi"), chromedp.Click(button("Run"))}, to("Agents"), "Submitted as"},
		{"a batch that is tried again", "batches/mixed", "POST", "/retry", actions{chromedp.Click(button("Retry the failed lines"))}, to("Runs"), "A new batch has the failed lines"},
		{
			"a message", "runs/a", "POST", "/steer",
			actions{chromedp.Click(button("Send a message")), chromedp.SendKeys("dialog textarea", "hurry"), chromedp.Click(button("Send"))},
			actions{chromedp.Click(shut), chromedp.Click(button("Send a message")), chromedp.SendKeys("dialog textarea", "wait")},
			"Sent",
		},
		{
			"a fork", "runs/r", "POST", "/fork",
			actions{chromedp.Click(button("Fork")), chromedp.Click(`//dialog` + button("Fork"))},
			actions{chromedp.Click(shut), chromedp.Click(button("Rate")), chromedp.WaitVisible("dialog textarea")},
			"Forked as",
		},
		{"the code of a view", "runs/r", "GET", "/views/quotas.js", actions{chromedp.Click(link("Quotas"))}, to("Agents"), ""},
	} {
		h.do(chromedp.Navigate(h.url + "/" + c.page))
		h.settled()
		arrived, release := l.next(c.method, c.path, c.says == "")
		h.do(c.ask...)
		<-arrived
		h.do(c.leave...)
		h.settled()
		before := eval[string](h, state)
		if c.says == "" { // what loads the same code is told when the view is
			h.do(chromedp.Evaluate[chromedp.Void](`{ window.told = false; import(new URL(".` + c.path + `", document.querySelector("script[src]").src)).catch(() => (window.told = true)); }`))
		}
		release()
		if c.says != "" {
			h.shows(c.says)
		} else {
			h.do(until("window.told"))
		}
		h.settled()
		if after := eval[string](h, state); after != before {
			t.Errorf("%s: when the answer comes, the page changes from\n%s\nto\n%s", c.what, before, after)
		}
	}
}
