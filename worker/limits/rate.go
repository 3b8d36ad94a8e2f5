package limits

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// CallCounter counts calls of tools by their rates. Safe for concurrent use.
type CallCounter interface {
	// CountCall is a queue.Count.
	CountCall(ctx context.Context, r *queue.Rate, window int64) (int, error)
}

// Bounds of permits.
const (
	maxRateAhead = time.Hour   // for how long a call is given a permit in advance; a call without one asks again then
	rateMargin   = time.Second // before the end of its window, when a permit is used at the latest: the call must arrive in it, and clocks differ
	marginPart   = 4           // of a window the margin is this part at most
	maxRatePause = rateMargin  // for how long a run waits in its slot for its permit to become valid, instead of in a park
)

// Rate parks a run whose calls must wait for the rates of their tools. Before a call is made it has a permit of each rate, counted in
// the window in which it is made, and uses it once: so no window has more calls than its limit, whatever happens to workers.
type Rate struct {
	Counter CallCounter
	Of      func(s *agent.State, tool string) []queue.Rate // the rates of a tool
	Due     func(s *agent.State) []agent.OpenCall          // the calls that are made next
	Unmade  func(s *agent.State) []string                  // calls that this owner has begun in the log and not made
	Flying  func() bool                                    // reports whether tool calls are on their way
	Run     messages.Ref
	Now     func() time.Time
	Log     *slog.Logger

	calls map[string]*rated // by agent.CallKey; written by look, Take and Use
}

// rated is what is known of a call that has rates.
type rated struct {
	permit *record.Permit // nil: it has none
	used   bool           // the permit was, or its call is no longer to be made with it
	again  time.Time      // when to ask again for a permit; zero: now
	rate   queue.Rate     // that it waits for
	text   string         // why it waits
}

// look returns what is known of an open call, with the permit that the last park left for it.
func (g *Rate) look(s *agent.State, call string) *rated {
	key := agent.CallKey(s.Step, call)
	known := g.calls[key]
	if known == nil {
		if g.calls == nil {
			g.calls = map[string]*rated{}
		}
		known = &rated{permit: s.Permit(call)}
		g.calls[key] = known
	}
	return known
}

// valid reports whether the permit counts for these rates, now or later.
func (c *rated) valid(rates []queue.Rate, now time.Time) bool {
	return c.permit != nil && !c.used && now.Before(c.permit.To) &&
		!slices.ContainsFunc(rates, func(r queue.Rate) bool { return !slices.Contains(c.permit.Rates, permitKey(&r)) })
}

// permitKey tells the rates of a permit apart.
func permitKey(r *queue.Rate) string { return r.Key + "/" + r.Window.String() }

// Permits reports whether an open call may be made now.
func (g *Rate) Permits(s *agent.State, call messages.ToolCall) bool {
	rates := g.Of(s, call.Name)
	if len(rates) == 0 {
		return true
	}
	now, c := g.Now(), g.look(s, call.ID)
	return c.valid(rates, now) && !now.Before(c.permit.From)
}

// Use hands out the permit of a call that is about to be made, which must begin before until; the zero time: it has no rate. The permit is
// used then, whatever becomes of the call.
func (g *Rate) Use(s *agent.State, call messages.ToolCall) (until time.Time) {
	rates := g.Of(s, call.Name)
	if len(rates) == 0 {
		return until
	}
	c := g.look(s, call.ID)
	if !c.valid(rates, g.Now()) {
		return time.Unix(0, 0) // its time has just passed
	}
	c.used = true
	return c.permit.To
}

// Before implements Gate. A call that has its permits is made while others wait; the run parks when all wait.
func (g *Rate) Before(s *agent.State, next agent.Action) Verdict {
	if _, calls := next.(*agent.CallTools); !calls || g.Flying() || !g.applies(s) {
		return Verdict{}
	}
	var (
		now   = g.Now()
		due   = g.Due(s)
		ready bool // a call may be made
		wants []string
		first *rated    // of those that wait
		at    time.Time // until when it does
	)
	for i := range due {
		rates := g.Of(s, due[i].Call.Name)
		if len(rates) == 0 {
			ready = true
			continue
		}
		c := g.look(s, due[i].Call.ID)
		until, valid := c.again, c.valid(rates, now)
		if valid {
			until = c.permit.From
			if c.text == "" { // of an earlier claim
				c.rate, c.text = rates[0], rates[0].Text
			}
		}
		switch {
		case valid && !until.After(now):
			ready = true
		case !until.After(now):
			wants = append(wants, due[i].Call.ID)
		case first == nil || until.Before(at):
			first, at = c, until
		}
	}
	switch {
	case len(wants) > 0:
		return Verdict{Instead: &agent.TakePermits{Calls: wants}}
	case ready || first == nil:
		return Verdict{}
	case at.Sub(now) <= maxRatePause && first.permit != nil:
		return Verdict{Instead: &agent.TakePermits{At: at}}
	default:
		return park(s, record.Parked{
			Reason: queue.ParkRate, Until: &at, Limit: first.rate.Name(), Question: first.text, Permits: g.left(s, due, now), Unmade: g.Unmade(s),
		})
	}
}

// applies reports whether an open call has a rate.
func (g *Rate) applies(s *agent.State) bool {
	return slices.ContainsFunc(s.Open, func(c agent.OpenCall) bool { return c.Result == nil && len(g.Of(s, c.Call.Name)) > 0 })
}

// left are the permits that calls have for later.
func (g *Rate) left(s *agent.State, due []agent.OpenCall, now time.Time) (out []record.Permit) {
	for i := range due {
		c := g.look(s, due[i].Call.ID)
		if c.valid(g.Of(s, due[i].Call.Name), now) {
			out = append(out, *c.permit)
		}
	}
	return out
}

// Take takes permits for calls, as an agent.TakePermits says: now or, where there is no room, in advance. An error is of ctx. When
// calls cannot be counted they wait, and ask again; once one could not, the others are not tried, since each try may last.
func (g *Rate) Take(ctx context.Context, s *agent.State, calls []string) error {
	var unknown error
	for i := range s.Open {
		call := &s.Open[i].Call
		if !slices.Contains(calls, call.ID) {
			continue
		}
		if rates := g.Of(s, call.Name); len(rates) > 0 {
			if unknown = g.take(ctx, s, call.ID, rates, unknown); ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	if unknown != nil {
		g.Log.WarnContext(ctx, "a run waits because the calls of a tool cannot be counted", "tenant", g.Run.Tenant, "task_id", g.Run.Run, "err", unknown)
	}
	return nil
}

// take takes permits for a call. It returns why calls cannot be counted, which may be known already.
func (g *Rate) take(ctx context.Context, s *agent.State, call string, rates []queue.Rate, unknown error) error {
	now, c := g.Now(), g.look(s, call)
	*c = rated{rate: rates[0], text: rates[0].Text}
	if unknown != nil {
		c.wait(now)
		return unknown
	}
	fullest := func(ctx context.Context, r *queue.Rate, window int64) (int, error) {
		n, err := g.Counter.CountCall(ctx, r, window)
		if n > r.Limit {
			c.rate, c.text = *r, r.Text
		}
		return n, err
	}
	at, ok, err := queue.Reserve(ctx, rates, soonest(rates, now), now.Add(maxRateAhead), fullest)
	switch {
	case err != nil:
		c.wait(g.Now()) // it may have been tried for long
	case !ok:
		c.again = at
	default:
		c.permit = permitAt(s, call, rates, at)
	}
	return err
}

// wait has the call ask again later: it is unknown whether there is room.
func (c *rated) wait(now time.Time) {
	c.again, c.text = now.Add(unknownHold), "the calls of the tool cannot be counted: "+c.text
}

// Again takes permits for a call that is repeated, when there is room now, and returns until when it must begin. It is called from any
// goroutine.
func (g *Rate) Again(ctx context.Context, rates []queue.Rate) (until time.Time, ok bool) {
	now := g.Now()
	from := soonest(rates, now)
	if !from.Equal(now) {
		return until, false
	}
	for i := range rates {
		n, err := g.Counter.CountCall(ctx, &rates[i], rates[i].Index(now))
		if err != nil || n > rates[i].Limit {
			return until, false
		}
	}
	_, until = span(rates, now)
	return until, true
}

func permitAt(s *agent.State, call string, rates []queue.Rate, at time.Time) *record.Permit {
	p := &record.Permit{Step: s.Step, Call: call}
	p.From, p.To = span(rates, at)
	for i := range rates {
		p.Rates = append(p.Rates, permitKey(&rates[i]))
	}
	return p
}

// span is when a permit that was taken in the windows of a moment may be used.
func span(rates []queue.Rate, at time.Time) (from, to time.Time) {
	for i := range rates {
		r := &rates[i]
		window := r.Index(at)
		begin, end := r.Start(window), r.Start(window+1).Add(-margin(r))
		if begin.After(from) {
			from = begin
		}
		if to.IsZero() || end.Before(to) {
			to = end
		}
	}
	return from, to
}

// soonest is now or, when a window is about to end, the begin of the next.
func soonest(rates []queue.Rate, now time.Time) time.Time {
	at := now
	for i := range rates {
		r := &rates[i]
		if next := r.Index(now) + 1; !now.Before(r.Start(next).Add(-margin(r))) && r.Start(next).After(at) {
			at = r.Start(next)
		}
	}
	return at
}

func margin(r *queue.Rate) time.Duration { return min(rateMargin, r.Window/marginPart) }
