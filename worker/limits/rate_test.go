package limits_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
)

// paced is a run with open calls, and what its gate of rates knows. It is 5 s after the full minute.
type paced struct {
	t   *testing.T
	w   *world
	set *limits.Set
	s   *agent.State
}

func newPaced(t *testing.T, w *world, calls ...string) *paced {
	t.Helper()
	p := &paced{t: t, w: w}
	p.set, p.s = newSet(w)
	p.s.Head.Claim = "mine"
	for i, tool := range calls {
		p.s.Open = append(p.s.Open, agent.OpenCall{Call: messages.ToolCall{ID: strconv.Itoa(i + 1), Name: tool}})
	}
	return p
}

// next performs what the gate asks for, and says what it comes to: which calls may be made, or the park.
func (p *paced) next() string {
	p.t.Helper()
	for range 10 {
		v := p.set.Rate.Before(p.s, &agent.CallTools{})
		switch a := v.Instead.(type) {
		case nil:
			var may []string
			for i := range p.s.Open {
				if c := &p.s.Open[i]; c.Result == nil && p.set.Rate.Permits(p.s, c.Call) {
					may = append(may, c.Call.ID)
				}
			}
			return "call " + strings.Join(may, " ")
		case *agent.Park:
			text := []string{said(v)}
			for _, held := range a.Parked.Permits {
				text = append(text, fmt.Sprintf("%s has %v to %v", held.Call, held.From.Sub(now), held.To.Sub(now)))
			}
			return strings.Join(text, ", ")
		case *agent.TakePermits:
			if len(a.Calls) == 0 {
				p.w.later = a.At.Sub(now)
			} else if err := p.set.Rate.Take(p.t.Context(), p.s, a.Calls); err != nil {
				return err.Error()
			}
		default:
			p.t.Fatalf("%T", a)
		}
	}
	return "no end"
}

// made makes the calls that may be made.
func (p *paced) made() {
	p.t.Helper()
	for i := range p.s.Open {
		if c := &p.s.Open[i]; c.Result == nil && p.set.Rate.Permits(p.s, c.Call) {
			p.set.Rate.Use(p.s, c.Call)
			c.Result = &messages.ToolResult{CallID: c.Call.ID}
		}
	}
}

func perMinute(n int) []queue.Rate {
	return []queue.Rate{{Key: "fleet:web", Limit: n, Window: time.Minute, Text: "the rule"}}
}

func TestRateGate(t *testing.T) {
	minute := func(n int) map[string][]queue.Rate { return map[string][]queue.Rate{"get": perMinute(n)} }
	for name, c := range map[string]struct {
		w     *world
		calls []string
		with  func(*paced)
		want  string
	}{
		"no rate":                {&world{}, []string{"get"}, nil, "call 1"},
		"there is room":          {&world{rates: minute(2)}, []string{"get", "get"}, nil, "call 1 2"},
		"room for one of two":    {&world{rates: minute(1)}, []string{"get", "get"}, nil, "call 1"},
		"another tool is free":   {&world{rates: minute(1)}, []string{"get", "get", "read"}, nil, "call 1 3"},
		"the other one waits":    {&world{rates: minute(1)}, []string{"get", "get"}, func(p *paced) { p.next(); p.made() }, "park rate for 55s, 2 has 55s to 1m54s"},
		"three wait":             {&world{rates: minute(1)}, []string{"get", "get", "get", "get"}, func(p *paced) { p.next(); p.made() }, "park rate for 55s, 2 has 55s to 1m54s, 3 has 1m55s to 2m54s, 4 has 2m55s to 3m54s"},
		"the minute is over":     {&world{rates: minute(1)}, []string{"get", "get"}, func(p *paced) { p.next(); p.made(); p.next(); p.w.later = 55 * time.Second }, "call 2"},
		"it comes too late":      {&world{rates: minute(1)}, []string{"get", "get"}, func(p *paced) { p.next(); p.made(); p.next(); p.w.later = 114 * time.Second }, "call 2"}, // with the next one, after a moment
		"it comes in the next":   {&world{rates: minute(1)}, []string{"get", "get", "get"}, func(p *paced) { p.next(); p.made(); p.next(); p.w.later = 116 * time.Second }, "call 3"},
		"the minute ends soon":   {&world{rates: minute(1), later: 54500 * time.Millisecond}, []string{"get"}, nil, "call 1"},
		"what flies comes first": {&world{rates: minute(1), flying: true}, []string{"get"}, nil, "call "},
		"nothing can be counted": {&world{rates: minute(1), err: errors.New("away")}, []string{"get"}, nil, "park rate for 1m0s"},
		"its time is over first": {&world{rates: minute(1)}, []string{"get", "get"}, func(p *paced) { p.next(); p.made(); p.s.Task.Deadline = new(now.Add(20 * time.Second)) }, "park rate for 20s, 2 has 55s to 1m54s"},
		"an hour is full": {
			&world{rates: map[string][]queue.Rate{"get": {{Key: "fleet:web", Limit: 1, Window: time.Hour}}}},
			[]string{"get", "get", "get"},
			func(p *paced) { p.next(); p.made(); p.next(); p.s.Open[1].Result = &messages.ToolResult{} }, "park rate for 1h0m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPaced(t, c.w, c.calls...)
			if c.with != nil {
				c.with(p)
			}
			if got := p.next(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A permit for later is of the first claim after its park. A claim after that, which cannot know what became of it, takes another.
func TestAPermitIsOfOneClaim(t *testing.T) {
	w := &world{rates: map[string][]queue.Rate{"get": perMinute(1)}}
	p := newPaced(t, w, "get", "get")
	p.next()
	p.made()
	park, ok := p.set.Rate.Before(p.s, &agent.CallTools{}).Instead.(*agent.Park)
	if !ok || park.Parked.Reason != queue.ParkRate || park.Parked.Limit != "web" || park.Parked.Question != "the rule" || park.Parked.Call != "" {
		t.Fatalf("%+v", park)
	}
	claim := func(s *agent.State, id string) *paced {
		t.Helper()
		if err := s.Advance(&record.Claimed{Claim: id, Resumes: queue.ParkRate}); err != nil {
			t.Fatal(err)
		}
		set, _ := newSet(w)
		return &paced{t, w, set, s}
	}
	if err := p.s.Advance(&park.Parked); err != nil {
		t.Fatal(err)
	}
	w.later = 56 * time.Second
	second := claim(p.s.Clone(), "second")
	if got := second.next(); got != "call 2" {
		t.Errorf("the first claim after the park: %s", got)
	}
	if until := second.set.Rate.Use(second.s, second.s.Open[1].Call); until.Sub(now) != 114*time.Second {
		t.Errorf("the permit is good until %v", until.Sub(now))
	}
	if got := second.next(); !strings.HasPrefix(got, "park rate") {
		t.Errorf("the permit is good for two calls: %s", got)
	}
	third := claim(second.s, "third")
	if got := third.next(); !strings.HasPrefix(got, "park rate") {
		t.Errorf("a claim after another has its permit: %s", got)
	}
}

// What was begun in the log and not made is begun again: its outcome is known.
func TestACallThatCameTooLateIsBegunAgain(t *testing.T) {
	w := &world{rates: map[string][]queue.Rate{"get": perMinute(1)}, unmade: []string{"2"}}
	p := newPaced(t, w, "get", "get")
	p.next()
	p.made()
	p.s.Open[1].Started, p.s.ToolCalls = "mine", 2
	p.next()
	park, ok := p.set.Rate.Before(p.s, &agent.CallTools{}).Instead.(*agent.Park)
	if !ok || !cmp.Equal(park.Parked.Unmade, []string{"2"}) {
		t.Fatalf("%+v", park)
	}
	if err := p.s.Advance(&park.Parked); err != nil {
		t.Fatal(err)
	}
	if p.s.Open[1].Started != "" || p.s.ToolCalls != 1 {
		t.Errorf("after the park it is begun by %q, and %d calls are", p.s.Open[1].Started, p.s.ToolCalls)
	}
}

// Another rule than the one a permit was taken for is another permit.
func TestAPermitIsForItsRates(t *testing.T) {
	w := &world{rates: map[string][]queue.Rate{"get": perMinute(1)}}
	p := newPaced(t, w, "get")
	if got := p.next(); got != "call 1" {
		t.Fatal(got)
	}
	w.rates["get"] = append(w.rates["get"], queue.Rate{Key: "tenant:t:new", Limit: 1, Window: time.Minute})
	if p.set.Rate.Permits(p.s, p.s.Open[0].Call) {
		t.Error("a permit counts for a rule that came later")
	}
}

// A further attempt takes a permit that is there at once, and none for later.
func TestAgain(t *testing.T) {
	w := &world{}
	p := newPaced(t, w)
	rates := perMinute(2)
	for i, want := range []bool{true, true, false, false} {
		if until, ok := p.set.Rate.Again(t.Context(), rates); ok != want || ok && until.Sub(now) != 54*time.Second {
			t.Errorf("attempt %d: until %v, %t", i, until.Sub(now), ok)
		}
	}
	w.later = time.Minute
	if _, ok := p.set.Rate.Again(t.Context(), rates); !ok {
		t.Error("attempts have used up the next minute")
	}
	w.err = errors.New("away")
	if _, ok := p.set.Rate.Again(t.Context(), rates); ok {
		t.Error("it is counted without a count")
	}
}

func TestTakeEndsWithItsContext(t *testing.T) {
	w := &world{rates: map[string][]queue.Rate{"get": perMinute(2)}}
	p := newPaced(t, w, "get")
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if err := p.set.Rate.Take(ctx, p.s, []string{"1"}); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
}

// Counts of windows that are over take no room.
func TestCountsForget(t *testing.T) {
	var c limits.Counts
	r := perMinute(1)[0]
	for w := range int64(500) {
		if n, err := c.CountCall(t.Context(), &r, w); n != 1 || err != nil {
			t.Fatalf("window %d: %d, %v", w, n, err)
		}
	}
	if n, _ := c.CountCall(t.Context(), &r, 440); n != 2 {
		t.Errorf("a window an hour before is counted anew: %d", n)
	}
	if n, _ := c.CountCall(t.Context(), &r, 3); n != 1 {
		t.Errorf("a window of long ago is remembered: %d", n)
	}
}
