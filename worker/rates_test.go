package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/policy"
)

// callTwice is a run of one reply with two calls.
const callTwice = `
scenes:
  - match: fetch
    turns:
      - text: I fetch both.
        calls: [{name: fetch, arguments: {}}, {name: fetch, arguments: {}}]
      - text: Done.
`

// farEnd is the far end of the tool fetch. It counts calls by the window of its own clock in which they arrive.
type farEnd struct {
	*httptest.Server

	window time.Duration

	mu    sync.Mutex
	calls map[string]int // by who calls, and window
	all   int
}

func newFarEnd(t *testing.T, window time.Duration) *farEnd {
	t.Helper()
	s := &farEnd{window: window, calls: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		at := time.Now().Unix() / int64(window/time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all++
		for _, who := range []string{"fleet", "tenant " + r.FormValue("tenant")} {
			s.calls[fmt.Sprint(who, " in ", at)]++
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// fetch is a tool that calls the site.
func (s *farEnd) fetch(t *testing.T) tools.Tool {
	t.Helper()
	tool, err := tools.Func(messages.ToolSpec{Name: "fetch", Description: "Fetches.", Effect: messages.EffectRead},
		func(ctx context.Context, c tools.Call, _ struct{}) (tools.Result, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"?tenant="+url.QueryEscape(c.Run.Tenant), http.NoBody)
			if err != nil {
				return tools.Result{}, err
			}
			resp, err := s.Client().Do(req)
			if err != nil {
				return tools.Result{}, err
			}
			return tools.Text("fetched"), resp.Body.Close()
		})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// Two workers together keep the rate of the fleet and that of a tenant in every window, as the far end of the tool counts it, and all
// calls are made in the end. The windows of this test are of two seconds.
func TestRatesHoldForTheFleet(t *testing.T) {
	def := messages.Definition{Name: "fetcher", Tools: []string{"fetch"}}
	def.SetDefaults()
	h := open(t, 30*time.Second, def)
	const window = 2 * time.Second
	limits := map[string]int{"fleet": 4, "tenant acme": 2}
	layer := func(source string) policy.Layer {
		return policy.Layer{Source: source, Minute: window, Policy: &messages.Policy{Rates: []messages.RateRule{{Name: "site", Tool: "fet*", PerMinute: new(limits[source])}}}}
	}
	h.policies = func(tenant string) []policy.Layer {
		if tenant == "acme" {
			return []policy.Layer{layer("fleet"), layer("tenant acme")}
		}
		return []policy.Layer{layer("fleet")}
	}
	s := newFarEnd(t, window)
	for _, name := range []string{"w1", "w2"} {
		h.worker(name, script(t, callTwice), worker.Config{Slots: 1}, s.fetch(t)) // a run that waits holds no slot
	}
	var runs []messages.Ref
	for i := range 8 {
		tenant := []string{"acme", "other"}[i%2]
		runs = append(runs, h.submit(messages.Task{Tenant: tenant, Agent: "fetcher", Input: messages.TextInput("fetch both")}))
	}
	waited := 0
	for _, run := range runs {
		for _, e := range h.events(run) {
			if e.Name() != messages.EventRunWaiting {
				continue
			}
			var waits messages.RunWaiting
			if err := json.Unmarshal(e.Data, &waits); err != nil {
				t.Fatal(err)
			}
			if waits.Reason != queue.ParkRate || waits.Limit != "site" || waits.Until == nil || !strings.HasPrefix(waits.Question, "rule site of ") {
				t.Errorf("%s waits so: %+v", run, waits)
			}
			waited++
		}
		if r := h.result(run); !r.Success || len(r.Actions) != 2 || !r.Actions[0].OK || !r.Actions[1].OK {
			t.Errorf("%s ends so: %+v", run, r)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, n := range s.calls {
		who, _, _ := strings.Cut(at, " in ")
		if limit := limits[who]; limit > 0 && n > limit {
			t.Errorf("%d calls of the %s, which may make %d", n, at, limit)
		}
	}
	if s.all != 2*len(runs) || waited == 0 {
		t.Errorf("%d calls were made, and runs waited %d times", s.all, waited)
	}
	t.Logf("calls: %v; waits: %d", s.calls, waited)
}

// A run that waits for the rate of a tool says so, can be cancelled, and gives its slot to others.
func TestWaitForARate(t *testing.T) {
	def := messages.Definition{Name: "fetcher", Tools: []string{"fetch"}, Policy: &messages.Policy{Rates: []messages.RateRule{{Name: "site", Tool: "fetch", PerHour: new(1)}}}}
	def.SetDefaults()
	h := open(t, 30*time.Second, def)
	s := newFarEnd(t, time.Hour)
	h.worker("w", script(t, callTwice), worker.Config{Slots: 1}, s.fetch(t))
	run := h.submit(messages.Task{Agent: "fetcher", Input: messages.TextInput("fetch both")})
	h.until(run, messages.EventRunWaiting)
	var st *control.RunStatus
	eventually(t, "its status says that it waits", func() bool {
		var err error
		if st, err = h.client.Status(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		return st.Waits == queue.ParkRate
	})
	text := "rule site of agent fetcher allows 1 call of fetch in an hour"
	if st.Status != messages.StatusWaiting || st.Until == nil || st.WaitsFor != text {
		t.Errorf("its status is %+v", st)
	}
	if y := h.why(run); !strings.HasPrefix(y.Text, "It waits until a tool may be called again: "+text+", until ") {
		t.Errorf("why: %q", y.Text)
	}
	if _, err := h.client.Cancel(t.Context(), run, "enough"); err != nil {
		t.Fatal(err)
	}
	if r := h.result(run); r.Status != messages.StatusCancelled {
		t.Errorf("it ends so: %+v", r)
	}
	if s.mu.Lock(); s.all != 1 {
		t.Errorf("%d calls were made", s.all)
	}
	s.mu.Unlock()
}
