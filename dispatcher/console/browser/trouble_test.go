package browser_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/control"
)

// before puts a proxy before the dispatcher, with a gate that may answer or hold a request itself: then it returns true.
func (h *hall) before(gate func(w http.ResponseWriter, r *http.Request) bool) {
	h.Helper()
	to, err := url.Parse(h.url)
	if err != nil {
		h.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // the browser has gone elsewhere
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !gate(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	h.Cleanup(server.Close)
	h.url = server.URL
}

// asks reports whether a request is for what a page shows: of the API, and not the question who is asking.
func asks(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/v1/") && r.URL.Path != "/v1/caller"
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	body, _ := json.Marshal(map[string]any{"status": status, "title": http.StatusText(status), "detail": sentence}) // of strings and a number
	_, _ = w.Write(body)                                                                                            // the browser may have gone elsewhere
}

// refusing has the requests of pages answered with a status and a sentence; zero: as the dispatcher does.
func (h *hall) refusing(status *atomic.Int64) {
	h.before(func(w http.ResponseWriter, r *http.Request) bool {
		s := status.Load()
		if s == 0 || !asks(r) {
			return false
		}
		refuse(w, int(s))
		return true
	})
}

const sentence = "the harbour is closed until the storm has passed"

// refused checks that a page whose requests are refused shows the sentence of the API under its heading, and continues when it is asked to try again.
func (h *hall) refused(page, text string, status *atomic.Int64) {
	h.Helper()
	for _, s := range []int64{http.StatusInternalServerError, http.StatusForbidden} {
		status.Store(s)
		h.do(chromedp.Navigate(h.url + "/" + page))
		h.shows(sentence)
		h.settled()
		h.do(chromedp.WaitVisible("main h1"), chromedp.WaitVisible(button("Try again")))
		h.look("light", 390, 1)
		h.fits("/"+page+", refused", 390)
		h.look("light", 1280, 1)
		status.Store(0)
		eval[int](h, `[...document.querySelectorAll(".failure button")].map((b) => b.click()).length`)
		h.do(until(`!document.querySelector("main .failure button")`))
		h.shows(text)
	}
}

func TestEveryViewShowsItsErrors(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.furnish()
	var status atomic.Int64
	h.refusing(&status)
	all := pages()
	delete(all, "keys") // asks for nothing without authentication
	for page, text := range all {
		h.refused(page, text, &status)
	}
}

// The keys too, which are there with authentication alone; and while they are loaded they have their place.
func TestKeysShowTheirErrors(t *testing.T) {
	h := open(t, settings.AuthOn, script)
	h.signIn(control.RoleAdmin)
	h.shows("Overview")
	var status atomic.Int64
	h.refusing(&status)
	h.refused("keys", "Revoke", &status)
}

// A view of several requests of which one is refused says so too.
func TestEachRequestThatIsRefusedIsTold(t *testing.T) {
	h := openOn(t, settings.AuthOff, routed(t))
	h.furnish()
	h.submit(`{"id":"e","input":"write","labels":{"evalSuite":"greetings","evalCase":"short"}}`, true)
	var refused atomic.Value
	refused.Store("")
	h.before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != refused.Load() {
			return false
		}
		refuse(w, http.StatusForbidden)
		return true
	})
	all := pages()
	all["suites/greetings"] = "By case"
	told := 0
	for page, text := range all {
		h.do(chromedp.Navigate(h.url + "/" + page))
		h.shows(text)
		h.settled()
		for _, path := range eval[[]string](h, `[...new Set(performance.getEntriesByType("resource").map((e) => new URL(e.name).pathname))].filter((p) => p.startsWith("/v1/"))`) {
			if path == "/v1/caller" || needless(path) {
				continue
			}
			told++
			refused.Store(path)
			h.do(chromedp.Navigate(h.url + "/" + page))
			h.do(until(`document.querySelector("main")?.innerText.includes(`+quote(t, sentence)+`)`), chromedp.WaitVisible("main h1"))
			refused.Store("")
		}
	}
	if told < 50 {
		t.Errorf("%d requests were refused", told)
	}
}

// needless reports whether a page shows the same without what it asks for: the state of a run follows from its events.
func needless(path string) bool {
	run, is := strings.CutPrefix(path, "/v1/tasks/")
	return is && !strings.Contains(run, "/")
}

// A view without content says so, and what to do about it, with the command to copy if there is one.
func TestEveryViewSaysWhatToDoFirst(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	for page, want := range map[string]struct {
		says    string
		command string
	}{
		"":                        {"Nothing has run yet", "longshore submit"},
		"runs":                    {"No runs in the last 24 hours", "longshore submit"},
		"runs?agent=none":         {"No run matches", ""},
		"inbox":                   {"Nothing waits for you", ""},
		"prompts":                 {"No prompts", "longshore prompts put"},
		"sessions":                {"No sessions", "longshore submit --session"},
		"batches":                 {"No batches", "longshore batch submit"},
		"schedules":               {"No schedules", "longshore schedules apply"},
		"lanes":                   {"The queue is empty", ""},
		"dead-letters":            {"No dead letters", ""},
		"dead-letters?agent=none": {"No dead letter matches", ""},
		"memory":                  {"Nothing is remembered yet", "longshore memory put"},
		"memory/none":             {"This collection is empty", ""},
		"memory/none?tag=none":    {"Nothing matches", ""},
		"suites":                  {"No suite ran here", "longshore eval"},
		"suites/none":             {"No run of this suite", ""},
		"workspaces":              {"No named workspaces", "longshore submit --named-workspace"},
		"quotas":                  {"No quotas", "longshore quotas set"},
		"keys":                    {"Authentication is disabled", "longshore dispatcher"},
		"audit":                   {"Nothing was changed yet", ""},
		"tools?q=zzz":             {"No tool matches", ""},
		"tools/none":              {"No worker that answers offers this tool", ""},
		"compare":                 {"Choose two runs", ""},
	} {
		h.empty(page, want.says, want.command)
	}
	h.submit(`{"id":"r","input":"hi"}`, true)
	h.empty("runs/r?tab=files", "No files", "")
	h.empty("runs/r?tab=logs", "No process has logged anything about this run", "")
	_, listed := h.ask("GET", "/v1/workers", "")
	for _, w := range listed["workers"].([]any) {
		h.must(http.StatusOK, "POST", "/v1/workers/"+w.(map[string]any)["id"].(string)+"/drain", "")
	}
	h.empty("workers", "No worker answers", "longshore worker")
	h.empty("tools", "No worker offers tools", "longshore worker")
}

// empty checks what a page without content says.
func (h *hall) empty(page, says, command string) {
	h.Helper()
	h.look("light", 1280, 1)
	h.do(chromedp.Navigate(h.url + "/" + page))
	h.shows(says)
	h.settled()
	for _, width := range []int64{1280, 390} {
		h.look("light", width, 1)
		h.fits("/"+page+", empty", width)
	}
	h.photograph("empty_"+page, "light", 390)
	state := eval[struct {
		Heading, Failed bool
		Command         string
	}](h, `({Heading: !!document.querySelector("main h1")?.innerText, Failed: !!document.querySelector("main .failure"), Command: document.querySelector("main .empty .command pre")?.innerText ?? ""})`)
	if !state.Heading || state.Failed || !strings.Contains(state.Command, command) || (command == "") != (state.Command == "") {
		h.Errorf("/%s, empty: %+v, and the command should have %q", page, state, command)
	}
}

// A view that waits for its first answer has its heading and a place for what comes, and shows that when it is there.
func TestEveryViewShowsThatItLoads(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.furnish()
	var held atomic.Pointer[chan struct{}]
	h.before(func(_ http.ResponseWriter, r *http.Request) bool {
		if until := held.Load(); until != nil && asks(r) {
			select {
			case <-*until:
			case <-r.Context().Done():
			}
		}
		return false
	})
	all := pages()
	delete(all, "keys") // asks for nothing without authentication
	for page, text := range all {
		until := make(chan struct{})
		held.Store(&until)
		h.do(chromedp.Navigate(h.url+"/"+page), chromedp.WaitVisible("main h1"), chromedp.WaitVisible(`main .skeleton[role=status][aria-label=Loading]`))
		for _, width := range []int64{1280, 390} {
			h.look("light", width, 1)
			h.fits("/"+page+", loading", width)
		}
		if eval[bool](h, `!!document.querySelector("main .failure, main .empty")`) {
			t.Errorf("/%s says what it cannot know while it loads", page)
		}
		close(until)
		held.Store(nil)
		h.shows(text)
		h.settled()
	}
}
