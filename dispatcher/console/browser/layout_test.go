package browser_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
)

const (
	slowAnswer = 150 * time.Millisecond // before each answer of the API
	slowLine   = 5 * time.Millisecond   // before each line of a stream of events
)

// slowly puts a proxy before the dispatcher that answers as a slow network does: each answer of the API late, events line by line.
func (h *hall) slowly() {
	h.Helper()
	to, err := url.Parse(h.url)
	if err != nil {
		h.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }}
	proxy.ModifyResponse = func(r *http.Response) error {
		done := r.Request.Context().Done()
		if strings.HasPrefix(r.Request.URL.Path, "/v1/") {
			pause(done, slowAnswer)
		}
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
			return nil
		}
		r.Body = &slowLines{r.Body, bufio.NewReader(r.Body), done, nil}
		return nil
	}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // the browser has gone elsewhere
	server := httptest.NewServer(proxy)
	h.Cleanup(server.Close)
	h.url = server.URL
}

// slowLines reads one line after the other, each after a pause.
type slowLines struct {
	io.Closer

	from *bufio.Reader
	done <-chan struct{} // closed when the answer is no longer wanted
	rest []byte
}

func (s *slowLines) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		line, err := s.from.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		pause(s.done, slowLine)
		s.rest = line
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func pause(done <-chan struct{}, d time.Duration) {
	select {
	case <-time.After(d):
	case <-done:
	}
}

// shifted is by how much what the page shows has moved since it was opened, without the user's doing, as the browser itself counts it: the
// cumulative layout shift; and what moved.
func (h *hall) shifted() (sum float64, what string) {
	h.Helper()
	type shift struct {
		Value float64
		What  []string
	}
	eval[bool](h, twoFrames)
	var lines []string
	for _, s := range eval[[]shift](h, `new Promise((done) => new PerformanceObserver((list, it) => { it.disconnect(); done(list.getEntries().filter((e) => !e.hadRecentInput).map((e) => ({Value: e.value,
		What: e.sources.map((s) => (s.node?.nodeName + "." + s.node?.className + " " + (s.node?.textContent ?? "").slice(0, 30)) + " " + s.previousRect.x.toFixed() + "," + s.previousRect.y.toFixed() + " " + s.previousRect.width.toFixed() + "×" + s.previousRect.height.toFixed() + " to " +
			s.currentRect.x.toFixed() + "," + s.currentRect.y.toFixed() + " " + s.currentRect.width.toFixed() + "×" + s.currentRect.height.toFixed())}))); }).observe({type: "layout-shift", buffered: true})
		|| setTimeout(() => done([]), 500))`) {
		sum += s.Value
		lines = append(lines, fmt.Sprintf("\n%.3f %s", s.Value, strings.Join(s.What, "; ")))
	}
	return sum, strings.Join(lines, "")
}

// What a view shows stays where it is while the rest of it comes, also from a slow API.
func TestNothingMovesWhileItLoads(t *testing.T) {
	const most = 0.02
	h := open(t, settings.AuthOff, script)
	h.furnish()
	h.must(http.StatusOK, "POST", "/v1/tasks?wait=60s", `{"id":"f","input":"fail"}`)
	h.slowly()
	all := pages()
	all["runs/f"] = "it broke"
	for page, text := range all {
		for _, width := range []int64{1280, 390} {
			h.look("light", width, 1)
			h.do(chromedp.Navigate(h.url + "/" + page))
			h.shows(text)
			h.settled()
			h.do(until(`performance.getEntriesByType("resource").length > 0`))
			sum, what := h.shifted()
			if sum > 0 {
				t.Logf("/%s, %d wide, %.4f:%s", page, width, sum, what)
			}
			if sum > most {
				t.Errorf("/%s, %d wide, moves by %.3f:%s", page, width, sum, what)
			}
		}
	}
}
