package browser_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
)

// wire forwards TCP connections, until it is cut.
type wire struct {
	to    string
	where string
	tasks sync.WaitGroup

	mu    sync.Mutex
	l     net.Listener
	conns map[net.Conn]bool
}

// wireTo is one to an address.
func wireTo(t *testing.T, to string) *wire {
	t.Helper()
	w := &wire{to: to, where: freeAddr(t), conns: map[net.Conn]bool{}}
	w.mend(t)
	t.Cleanup(w.cut)
	return w
}

func (w *wire) mend(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", w.where)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.l = l
	w.mu.Unlock()
	w.tasks.Go(func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", w.to)
			if err != nil {
				_ = a.Close()
				continue
			}
			w.mu.Lock()
			w.conns[a], w.conns[b] = true, true
			gone := w.l != l
			w.mu.Unlock()
			for _, c := range [][2]net.Conn{{a, b}, {b, a}} {
				w.tasks.Go(func() {
					_, _ = io.Copy(c[0], c[1])
					_, _ = c[0].Close(), c[1].Close()
				})
			}
			if gone {
				_, _ = a.Close(), b.Close()
			}
		}
	})
}

// cut ends all connections and takes no more.
func (w *wire) cut() {
	w.mu.Lock()
	if w.l != nil {
		_ = w.l.Close()
		w.l = nil
	}
	for c := range w.conns {
		_ = c.Close()
	}
	clear(w.conns)
	w.mu.Unlock()
	w.tasks.Wait()
}

// gone waits until the page no longer has a text.
func (h *hall) gone(text string) {
	h.Helper()
	h.do(until(`!document.body.innerText.includes(` + quote(h.T, text) + `)`))
}

// A dispatcher that loses NATS says so in the page, which continues by itself when NATS is back.
func TestNATSIsAway(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	at, err := url.Parse(h.dev.NATS)
	if err != nil {
		t.Fatal(err)
	}
	nats, addr := wireTo(t, at.Host), freeAddr(t)
	inside := &hall{T: t, url: h.url}
	h.url = "http://" + addr
	h.dispatch(addr, "nats://"+nats.where)
	h.visit("/runs")
	h.shows("Submit a task")
	nats.cut()
	h.shows("The dispatcher cannot answer now")
	h.picture("nats_away")
	inside.submit(`{"id":"meanwhile","input":"hi"}`, true)
	nats.mend(t)
	h.shows("meanwhile")
	h.gone("The dispatcher cannot answer now")
}

// Each page that is kept current says that the dispatcher is gone, keeps what it shows, and continues with the next one.
func TestEachLivePageSurvives(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.must(http.StatusOK, "POST", "/v1/pauses", `{"kind":"agent","name":"idle","reason":"it is tried out","by":"ann"}`)
	h.submit(`{"id":"a","agent":"asker","input":"write"}`, false)
	inside, addr := &hall{T: t, url: h.url}, freeAddr(t)
	h.url = "http://" + addr
	kill := h.dispatch(addr, h.dev.NATS)
	h.visit("/")
	pages := []struct{ path, shows, then string }{
		{"/", "Waiting for approval", "later"},
		{"/runs", "1 found", "2 found"},
		{"/runs/a", "Approve", "Done: see haiku.txt"},
		{"/inbox", "write_file", "Nothing waits for you"},
		{"/lanes", "The queue is empty", "The queue is empty"},
		{"/workers", "Busy", "Busy"},
		{"/quotas", "it is tried out", "it is tried out"},
	}
	tabs := make([]*hall, len(pages))
	for i, p := range pages {
		tabs[i] = h.another()
		tabs[i].do(chromedp.Navigate(h.url + p.path))
		tabs[i].shows(p.shows)
	}
	kill()
	for i, p := range pages {
		tabs[i].shows("The dispatcher does not answer")
		tabs[i].shows(p.shows) // it keeps what it shows
	}
	inside.must(http.StatusOK, "POST", "/v1/tasks/a/approvals", `{"decision":"approve","call":"call_1_1"}`)
	inside.submit(`{"id":"later","input":"hi"}`, true)
	h.dispatch(addr, h.dev.NATS)
	for i, p := range pages {
		tabs[i].gone("The dispatcher does not answer")
		tabs[i].shows(p.then)
	}
}
