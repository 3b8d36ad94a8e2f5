package browser_test

import (
	"context"
	"sync"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// traffic is what a tab asks the dispatcher for.
type traffic struct {
	mu      sync.Mutex
	open    map[network.RequestID]string // what is not answered, or continues
	began   int
	changed chan struct{} // closed at each change
}

func newTraffic() *traffic {
	return &traffic{open: map[network.RequestID]string{}, changed: make(chan struct{})}
}

func (a *traffic) hear(event any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if e.Type == network.ResourceTypeDocument { // the requests of the page before are over, of which Chromium does not always tell
			clear(a.open)
		}
		a.open[e.RequestID] = e.Request.URL
		a.began++
	case *network.EventLoadingFinished:
		delete(a.open, e.RequestID)
	case *network.EventLoadingFailed:
		delete(a.open, e.RequestID)
	default:
		return
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

// until waits until something holds of what is open and how many requests there have been.
func (a *traffic) until(h *hall, what string, holds func(open map[network.RequestID]string, began int) bool) {
	h.Helper()
	late := time.After(patience)
	for {
		a.mu.Lock()
		ok, changed := holds(a.open, a.began), a.changed
		a.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			h.Fatalf("%s: %d requests, open are %v", what, a.began, a.open)
		}
	}
}

// another opens one more tab of the same browser, in a window of its own.
func (h *hall) another() *hall {
	h.Helper()
	tab, closeTab := chromedp.NewContext(h.tab(), chromedp.WithNewWindow(true))
	h.Cleanup(closeTab)
	two := &hall{T: h.T, dev: h.dev, dir: h.dir, url: h.url, tab: func() context.Context { return tab }}
	if err := chromedp.Listen(tab, h.hear); err != nil {
		h.Fatal(err)
	}
	return two
}

// listen counts what the tab asks for, from now on.
func (h *hall) listen() *traffic {
	h.Helper()
	a := newTraffic()
	if err := chromedp.Listen(h.tab(), a.hear); err != nil {
		h.Fatal(err)
	}
	return a
}
