package browser_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
)

// makers is what a page asks to be made, on a way that may hold the requests and lose their answers.
type makers struct {
	mu    sync.Mutex
	asked []string // the ids, of all requests
	lose  bool     // the next answer
	hold  chan struct{}
}

// making puts one before the dispatcher.
func (h *hall) making() *makers {
	h.Helper()
	m, inside := &makers{}, h.url
	h.before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || strings.Contains(r.URL.Path, ":") {
			return false
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		lose := m.note(r, body)
		if !lose {
			return false
		}
		m.forward(h, r, inside+r.URL.RequestURI())
		w.Header().Set("Content-Length", "1000") // with its head: a browser itself repeats a request of which nothing was answered
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	return m
}

// note keeps the id of a request, waits while requests are held, and reports whether its answer gets lost.
func (m *makers) note(r *http.Request, body []byte) (lose bool) {
	var said struct {
		ID    string `json:"id"`
		NewID string `json:"newId"`
	}
	_ = json.Unmarshal(body, &said) // it may have none
	m.mu.Lock()
	m.asked = append(m.asked, r.Header.Get("Idempotency-Key")+said.ID+said.NewID)
	lose, hold := m.lose, m.hold
	m.lose = false
	m.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}
	return lose
}

// forward has the dispatcher do what a request asks for.
func (m *makers) forward(h *hall, r *http.Request, to string) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, to, r.Body)
	if err != nil {
		h.Error(err)
		return
	}
	out.Header = r.Header.Clone()
	resp, err := http.DefaultClient.Do(out)
	if err != nil {
		h.Error(err)
		return
	}
	if _ = resp.Body.Close(); resp.StatusCode >= http.StatusBadRequest {
		h.Errorf("%s %s: %s", r.Method, r.URL, resp.Status)
	}
}

func (m *makers) set(lose bool, hold chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked, m.lose, m.hold = nil, lose, hold
}

func (m *makers) ids() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// A maker is an action of a page that makes a run.
type maker struct {
	what, page string
	first      string // what is chosen before
	open       string // what opens its dialog; empty: it is in the page
	field      string // to fill in
	text       string
	button     string
	made       string // an expression of the page that changes when it is made
	keyless    bool   // the API derives the id from what it is asked for
}

// ready opens the page, and the dialog if there is one.
func (h *hall) ready(m *maker) {
	h.Helper()
	h.do(chromedp.Navigate(h.url + "/" + m.page))
	h.settled()
	if m.first != "" {
		h.do(chromedp.Click(m.first))
	}
	h.unfold(m)
}

func (h *hall) unfold(m *maker) {
	h.Helper()
	if m.open != "" {
		h.do(chromedp.Click(m.open), chromedp.WaitVisible("dialog[open]"))
	}
	if m.field != "" {
		h.do(chromedp.WaitVisible(m.field))
		h.fill(m.field, m.text)
	}
	h.do(until(pressable(m.button)))
}

// pressable is an expression: a button is there, and not disabled.
func pressable(xpath string) string {
	return fmt.Sprintf(`((b) => b && !b.disabled)(document.evaluate(%q, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE).singleNodeValue)`, xpath)
}

// runs is how many there are, once there are more than so many.
func (h *hall) runs(more int) (n int) {
	h.Helper()
	(&keyboard{hall: h}).proves(deed{what: "the index", effect: api("/v1/tasks?limit=1", func(a map[string]any) bool {
		found, _ := a["found"].(float64)
		behind, _ := a["behind"].(float64)
		n = int(found)
		return behind == 0 && n > more
	})})
	return n
}

// whichMake are the actions of the pages that make runs.
func whichMake() []maker {
	const dialog = "//dialog"
	return []maker{
		{what: "try it", page: "try?agent=default", field: "textarea[name=task]", text: "hi", button: button("Run"), made: `new URLSearchParams(location.search).get("run")`},
		{what: "a fork", page: "runs/r", open: button("Fork"), button: dialog + button("Fork"), made: `document.querySelector("dialog a.main")?.href ?? ""`},
		{what: "a retry of chosen runs", page: "runs?label=set%3Dmade", first: `input[aria-label="Choose run r"]`, open: button("Retry 1"), button: dialog + button("Retry 1 run"), made: `document.querySelector(".sayings p:not(.bad)")?.innerText ?? ""`},
		{what: "a retry of a batch", page: "batches/mixed", button: button("Retry the failed lines"), made: `location.pathname`},
		{what: "a run of a schedule", page: "schedules/often", button: button("Run now"), made: `document.querySelector(".sayings p:not(.bad)")?.innerText ?? ""`},
		{
			what: "a redrive", page: "dead-letters", open: `(//main//tbody//button)[1]`, field: "dialog textarea", text: `{"input":"again","agent":"default"}`, button: dialog + button("Send again"),
			made: `document.querySelectorAll("main tbody tr").length + Boolean(document.querySelector("dialog"))`, keyless: true,
		},
	}
}

// What a page makes it makes once: when a button is pressed again while its answer is late, also in a dialog that was opened
// again; with a double click whose first half was answered; and when the answer got lost and it is pressed again.
func TestOneThingIsMade(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.submit(`{"id":"r","input":"hi","labels":{"set":"made"}}`, true)
	h.batch("mixed", "", `{"custom_id":"well","input":"hi"}`+"\n"+`{"custom_id":"badly","input":"fail"}`+"\n")
	h.shown("/v1/batches/mixed", "endedAt")
	h.must(http.StatusOK, "PUT", "/v1/schedules/often", `{"cron":"0 3 1 1 *","overlap":"allow","task":{"input":"hi"}}`)
	for i := range 3 {
		h.publish(fmt.Sprintf("tasks.normal.default.bad-%d", i), `{"input":"hi","agent":"unknown"}`)
	}
	h.shown("/v1/dead-letters", "bad-2")
	m, before := h.making(), h.runs(5) // r, two of the batch and three that are dead
	for _, one := range whichMake() {
		for _, how := range []string{"late", "double", "lost"} {
			what := fmt.Sprintf("%s, %s", one.what, how)
			m.set(false, nil)
			h.ready(&one)
			was := eval[string](h, "String("+one.made+")")
			switch how {
			case "late":
				h.late(m, &one)
			case "double":
				at := eval[[]float64](h, fmt.Sprintf(`((r) => [r.x + r.width / 2, r.y + r.height / 2])(document.evaluate(%q, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE).singleNodeValue.getBoundingClientRect())`, one.button))
				h.do(chromedp.MouseClickXY(at[0], at[1]), until(fmt.Sprintf(`String(%s) !== %q`, one.made, was)), chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2)))
			case "lost":
				m.set(true, nil)
				h.do(chromedp.Click(one.button))
				h.shows("broke before its answer was complete")
				if !eval[bool](h, `!!document.querySelector("dialog")`) {
					h.unfold(&one)
				}
				h.do(chromedp.Click(one.button))
			}
			if how == "lost" && one.keyless {
				h.shows("no such dead letter")
			} else {
				h.do(until(fmt.Sprintf(`String(%s) !== %q`, one.made, was)))
			}
			n := h.runs(before)
			if n != before+1 {
				t.Errorf("%s: it makes %d runs", what, n-before)
			}
			before = n
			ids := m.ids()
			for _, id := range ids {
				if id != ids[0] || (id == "") != one.keyless {
					t.Errorf("%s: it is asked for as %q", what, ids)
				}
			}
		}
	}
}

// late presses a button several times while its answer is awaited, the last time in a dialog that was closed and opened again.
func (h *hall) late(m *makers, one *maker) {
	h.Helper()
	hold := make(chan struct{})
	m.set(false, hold)
	h.do(chromedp.Click(one.button), chromedp.Click(one.button), chromedp.Click(one.button))
	if one.open != "" {
		h.do(chromedp.Click(`//dialog//header/button`))
		h.unfold(one)
		h.do(chromedp.Click(one.button))
		(&keyboard{hall: h}).proves(deed{what: "the second request", effect: func(*hall) string {
			if n := len(m.ids()); n != 2 {
				return fmt.Sprintf("%d requests", n)
			}
			return ""
		}})
	}
	close(hold)
}
