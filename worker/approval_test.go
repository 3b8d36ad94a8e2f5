package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/human"
	"github.com/longshore-run/longshore/worker"
)

const wrecking = `
scenes:
  - match: wreck
    turns:
      - text: I look, and tear it down.
        calls: [{name: wreck, arguments: {what: shed}}, {name: look, arguments: {what: shed}}]
      - text: Then so be it.
  - match: ask
    turns:
      - text: I ask.
        calls: [{name: ask_human, arguments: {question: Which colour?}}]
      - text: So it is.
`

// crane is a tool that counts its calls.
type crane struct {
	tools.Tool

	calls atomic.Int32
}

func newCrane(t *testing.T, name string, effect messages.Effect, destructive bool) *crane {
	t.Helper()
	c := &crane{}
	tool, err := tools.Func(messages.ToolSpec{Name: name, Description: "A crane.", Effect: effect, Destructive: destructive},
		func(_ context.Context, _ tools.Call, in struct {
			What string `json:"what"`
		},
		) (tools.Result, error) {
			c.calls.Add(1)
			return tools.Text(name + " " + in.What), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	c.Tool = tool
	return c
}

// site is a house whose workers can wreck.
type site struct {
	*house

	wreck, look *crane
}

func openSite(t *testing.T, approve *messages.Approve) *site {
	t.Helper()
	d := messages.Definition{Name: "wrecker", Tools: []string{"wreck", "look", "ask_human"}, Approve: approve}
	d.SetDefaults()
	return &site{
		house: open(t, 30*time.Second, d), wreck: newCrane(t, "wreck", messages.EffectOnce, true), look: newCrane(t, "look", messages.EffectRead, false),
	}
}

func (s *site) add(name string) (w *worker.Worker, stop func()) {
	s.t.Helper()
	ask, err := human.Tools()
	if err != nil {
		s.t.Fatal(err)
	}
	return s.worker(name, script(s.t, wrecking), worker.Config{}, s.wreck, s.look, ask[0])
}

func (s *site) begin(text string) messages.Ref {
	s.t.Helper()
	return s.submit(messages.Task{Agent: "wrecker", Input: messages.TextInput(text)})
}

// asked waits until the run asks, and returns what the dispatcher's list says about it.
func (s *site) asked(run messages.Ref) (asked control.WaitingApproval) {
	s.t.Helper()
	eventually(s.t, run.String()+" asks for an approval", func() bool { // the list follows the events, which follow the log
		list, err := s.client.Approvals().List(s.t.Context(), run.Tenant, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		i := slices.IndexFunc(list.Approvals, func(a control.WaitingApproval) bool { return a.ID == run.Run })
		if i >= 0 {
			asked = list.Approvals[i]
		}
		return i >= 0
	})
	return asked
}

func (s *site) decided(run messages.Ref) messages.ApprovalDecided {
	s.t.Helper()
	var d messages.ApprovalDecided
	e := s.until(run, messages.EventApprovalDecided)
	if err := json.Unmarshal(e.Data, &d); err != nil {
		s.t.Fatal(err)
	}
	return d
}

func TestApprovals(t *testing.T) {
	for name, tc := range map[string]struct {
		approve *messages.Approve
		deny    bool
		calls   int32
		want    string // of the result's text or the error's code
		event   messages.ApprovalDecided
	}{
		"approved": {
			calls: 1, want: "completed", event: messages.ApprovalDecided{Decision: messages.Approved, By: "ann", Reason: "because"},
		},
		"denied, and it continues": {
			deny: true, want: "completed", event: messages.ApprovalDecided{Decision: messages.Denied, By: "ann", Reason: "because"},
		},
		"denied, and it ends": {
			approve: &messages.Approve{OnDeny: messages.OnDenyEnd}, deny: true, want: "failed approval_denied",
			event: messages.ApprovalDecided{Decision: messages.Denied, By: "ann", Reason: "because"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t, tc.approve)
			s.add("first")
			run := s.begin("wreck it")
			a := s.asked(run)
			if a.Tool != "wreck" || !strings.Contains(a.Arguments, "shed") || a.Agent != "wrecker" || a.Step != 1 || a.Until == nil || a.Since.IsZero() {
				t.Errorf("waits: %+v", a)
			}
			if s.wreck.calls.Load() != 0 {
				t.Error("it was called before it was approved")
			}
			decide := s.client.Approvals().Approve
			if tc.deny {
				decide = s.client.Approvals().Deny
			}
			d := dispatcher.Decision{Call: a.Call, Hash: a.Hash, By: "ann", Reason: "because", Control: "x1"}
			if _, err := decide(t.Context(), run, d); err != nil {
				t.Fatal(err)
			}
			r := s.result(run)
			got := string(r.Status)
			if r.Error != nil {
				got += " " + string(r.Error.Code)
			}
			if got != tc.want || s.wreck.calls.Load() != tc.calls {
				t.Errorf("%s %v after %d calls", got, r.Result, s.wreck.calls.Load())
			}
			tc.event.CallID = a.Call
			if e := s.decided(run); e != tc.event {
				t.Errorf("approval_decided: %+v", e)
			}
			if tc.deny && !slices.ContainsFunc(r.Actions, func(a messages.ActionResult) bool {
				return a.Code == messages.CodeApprovalDenied && a.Output == "User denied approval: because"
			}) {
				t.Errorf("actions: %+v", r.Actions)
			}
			if _, err := decide(t.Context(), run, d); err != nil {
				t.Errorf("the same decision again: %v", err)
			}
			d.Control, d.By = "x2", "bob"
			if _, err := decide(t.Context(), run, d); !errors.Is(err, dispatcher.ErrDecided) || !strings.Contains(err.Error(), "by ann") {
				t.Errorf("another decision: %v", err)
			}
			list, err := s.client.Approvals().List(t.Context(), run.Tenant, 0)
			if err != nil || len(list.Approvals) != 0 {
				t.Errorf("still waiting: %+v, %v", list, err)
			}
		})
	}
}

func TestApprovalExpires(t *testing.T) {
	s := openSite(t, &messages.Approve{Expires: messages.Duration(time.Second), OnDeny: messages.OnDenyEnd})
	s.add("first")
	run := s.begin("wreck it")
	r := s.result(run)
	if r.Error == nil || r.Error.Code != messages.CodeApprovalExpired || s.wreck.calls.Load() != 0 {
		t.Errorf("%v after %d calls", r.Error, s.wreck.calls.Load())
	}
	if d := s.decided(run); d.Decision != messages.Lapsed || d.CallID == "" {
		t.Errorf("approval_decided: %+v", d)
	}
}

// The approval is in the log: any worker continues by it, and no worker need be there when it is given.
func TestApprovedWhileNobodyWorks(t *testing.T) {
	s := openSite(t, nil)
	_, stop := s.add("first")
	run := s.begin("wreck it")
	a := s.asked(run)
	stop()
	if _, err := s.client.Approvals().Approve(t.Context(), run, dispatcher.Decision{Call: a.Call, Hash: a.Hash}); err != nil {
		t.Fatal(err)
	}
	s.add("second")
	if r := s.result(run); !r.Success || s.wreck.calls.Load() != 1 {
		t.Errorf("%s %v after %d calls", r.Status, r.Error, s.wreck.calls.Load())
	}
}

// Of many who decide at once one counts, and all others are told who that was.
func TestManyApprovers(t *testing.T) {
	s := openSite(t, nil)
	s.add("first")
	run := s.begin("wreck it")
	a := s.asked(run)
	const people = 8
	var wins, denials atomic.Int32
	var wg sync.WaitGroup
	for i := range people {
		wg.Go(func() {
			decide := s.client.Approvals().Approve
			if i%2 == 1 {
				decide = s.client.Approvals().Deny
			}
			_, err := decide(t.Context(), run, dispatcher.Decision{Call: a.Call, By: "p" + string(rune('0'+i))})
			switch {
			case err == nil:
				wins.Add(1)
				denials.Add(int32(i % 2))
			case !errors.Is(err, dispatcher.ErrDecided) || !strings.Contains(err.Error(), "by p"):
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if s.result(run); wins.Load() != 1 || s.wreck.calls.Load() != 1-denials.Load() {
		t.Errorf("%d decisions counted, %d denials, %d calls", wins.Load(), denials.Load(), s.wreck.calls.Load())
	}
}

func TestHostileDecisions(t *testing.T) {
	s := openSite(t, nil)
	s.add("first")
	run := s.begin("wreck it")
	a := s.asked(run)
	for name, tc := range map[string]struct {
		subject, body string
		code          messages.Code
		field         string
	}{
		"not JSON":           {control.SubjectApprove, `{`, messages.CodeInvalidInput, "body"},
		"an unknown field":   {control.SubjectApprove, `{"id":"r","yes":true}`, messages.CodeInvalidInput, "yes"},
		"a hostile id":       {control.SubjectApprove, `{"id":"*.>","call":"c"}`, messages.CodeInvalidInput, "id"},
		"a hostile tenant":   {control.SubjectDeny, `{"id":"r","tenant":"*","call":"c"}`, messages.CodeInvalidInput, "tenant"},
		"an unknown run":     {control.SubjectApprove, `{"id":"unknown","call":"c"}`, messages.CodeNotFound, ""},
		"another tenant":     {control.SubjectApprove, `{"id":"RUN","tenant":"other","call":"CALL"}`, messages.CodeNotFound, ""},
		"another call":       {control.SubjectApprove, `{"id":"RUN","call":"nope"}`, messages.CodeConflict, ""},
		"no call":            {control.SubjectApprove, `{"id":"RUN"}`, messages.CodeInvalidInput, "call"},
		"other arguments":    {control.SubjectApprove, `{"id":"RUN","call":"CALL","hash":"` + strings.Repeat("0", 64) + `"}`, messages.CodeConflict, ""},
		"half a hash":        {control.SubjectApprove, `{"id":"RUN","call":"CALL","hash":"00"}`, messages.CodeInvalidInput, "hash"},
		"a long reason":      {control.SubjectDeny, `{"id":"RUN","call":"CALL","reason":"` + strings.Repeat("x", 2000) + `"}`, messages.CodeInvalidInput, "reason"},
		"an answer to it":    {control.SubjectAnswer, `{"id":"RUN","text":"yes"}`, messages.CodeConflict, ""},
		"a long answer":      {control.SubjectAnswer, `{"id":"RUN","text":"` + strings.Repeat("x", 40_000) + `"}`, messages.CodeInvalidInput, "text"},
		"an odd control id":  {control.SubjectApprove, `{"id":"RUN","call":"CALL","control":"a b"}`, messages.CodeInvalidInput, "control"},
		"a list of anything": {control.SubjectApprovals, `{"tenant":">"}`, messages.CodeInvalidInput, "tenant"},
		"a list too long":    {control.SubjectApprovals, `{"limit":100000}`, messages.CodeInvalidInput, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			body := strings.NewReplacer("RUN", run.Run, "CALL", a.Call).Replace(tc.body)
			reply, err := s.nc.Request(tc.subject, []byte(body), patience)
			if err != nil {
				t.Fatal(err)
			}
			var p messages.Problem
			if err := json.Unmarshal(reply.Data, &p); err != nil || p.Code != tc.code || p.Field != tc.field {
				t.Errorf("%s, want %s about %q", reply.Data, tc.code, tc.field)
			}
		})
	}
	if s.wreck.calls.Load() != 0 {
		t.Error("it was called")
	}
	if again := s.asked(run); again.Call != a.Call || !again.Since.Equal(a.Since) {
		t.Errorf("it waits with %+v, not %+v", again, a)
	}
}

func TestAskHuman(t *testing.T) {
	for name, tc := range map[string]struct {
		answer control.AnswerRequest
		want   string
	}{
		"answered":   {control.AnswerRequest{Text: "blue", By: "ann"}, "blue"},
		"not at all": {control.AnswerRequest{Text: "ask bob", Deny: true}, "ask bob"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t, nil)
			s.add("first")
			run := s.begin("ask me")
			var waits messages.RunWaiting
			e := s.until(run, messages.EventRunWaiting)
			if err := json.Unmarshal(e.Data, &waits); err != nil || waits.Reason != queue.ParkAnswer || waits.Question != "Which colour?" {
				t.Errorf("run_waiting: %s", e.Data)
			}
			if _, err := s.client.Approvals().Approve(t.Context(), run, dispatcher.Decision{Call: waits.CallID}); !errors.Is(err, dispatcher.ErrDecided) {
				t.Errorf("an approval of a question: %v", err)
			}
			var field *messages.FieldError
			if _, err := s.client.Approvals().Answer(t.Context(), run, control.AnswerRequest{}); !errors.As(err, &field) || field.Field != "text" {
				t.Errorf("no answer: %v", err)
			}
			if _, err := s.client.Approvals().Answer(t.Context(), run, tc.answer); err != nil {
				t.Fatal(err)
			}
			r := s.result(run)
			if !r.Success || len(r.Actions) != 1 || r.Actions[0].Output != tc.want || r.Actions[0].OK == tc.answer.Deny {
				t.Errorf("%s %+v", r.Status, r.Actions)
			}
		})
	}
}

// A budget's question is approved without a call.
func TestApproveABudget(t *testing.T) {
	for name, denied := range map[string]bool{"approved": false, "denied": true} {
		t.Run(name, func(t *testing.T) {
			h := open(t, 30*time.Second, spender(&messages.Budget{Caps: messages.Caps{ModelCalls: 1}, OnBudget: messages.OnBudgetAsk}))
			h.frugal(script(t, dear))
			run := h.spend()
			h.until(run, messages.EventRunWaiting)
			decide := h.client.Approvals().Approve
			if denied {
				decide = h.client.Approvals().Deny
			}
			if _, err := decide(t.Context(), run, dispatcher.Decision{By: "ann", Reason: "not a word that extends"}); err != nil {
				t.Fatal(err)
			}
			if r := h.result(run); r.Success == denied {
				t.Errorf("%s %v", r.Status, r.Error)
			}
		})
	}
}

// idle reports whether a worker has nothing in hand: no slot in use and no message to be kept alive.
func idle(w *worker.Worker) bool {
	st := w.Stats()
	return st.Busy == 0 && st.Held == 0
}

// Runs that wait cost their worker nothing: no slot, no goroutine, no message in hand to be kept alive.
func TestParkedRunsCostNothing(t *testing.T) {
	s := openSite(t, nil)
	w, _ := s.add("first")
	s.asked(s.begin("wreck it")) // all that is made once is made
	before := runtime.NumGoroutine()
	const runs = 60 // far more than the goroutines allowed below; a thousand cost as little
	for range runs {
		s.begin("wreck it")
	}
	deadline := time.Now().Add(patience)
	for {
		if st := w.Stats(); st.Runner.Claims < runs+1 && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		list, err := s.client.Approvals().List(t.Context(), messages.DefaultTenant, control.MaxApprovals)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Approvals) == runs+1 && idle(w) && runtime.NumGoroutine() <= before+5 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d wait, %+v, %d goroutines after %d", len(list.Approvals), w.Stats(), runtime.NumGoroutine(), before)
		}
		time.Sleep(20 * time.Millisecond) // until the last is parked and acked
	}
}
