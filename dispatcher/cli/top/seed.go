package top

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// topLate is how long after its end the index may still call a run running.
const topLate = 5 * time.Minute

const noRunsWork = "no run is being worked"

// topStop is the event with which a run ended or began to wait.
type topStop struct {
	at     time.Time // of the event
	number uint64    // of the event
	seen   time.Time
}

// askRunning asks the index for the runs that are being worked: those that began before `top` did and say nothing.
func (t *topping) askRunning(ctx context.Context, tenants []string, p *topPoll) {
	for _, tenant := range tenants {
		list, err := t.client.Runs().Running(ctx, tenant, topRunsMost)
		if err != nil {
			p.errs[topWorking] = err
			return
		}
		p.running, p.tenants = append(p.running, list.Runs...), append(p.tenants, tenant)
	}
}

// withLanes are the tenants and those that have a lane, as many as are asked for.
func withLanes(tenants []string, lanes *control.LaneList) []string {
	for i := range lanes.Lanes {
		t := lanes.Lanes[i].Tenant
		if t != "" && !slices.Contains(tenants, t) && len(tenants) < topTenants {
			tenants = append(tenants, t)
		}
	}
	return tenants
}

// seed takes in the running runs of the index. An event that came counts more than the index, which may be behind.
func (m *topModel) seed(p *topPoll, now time.Time) {
	if p.askedRuns {
		m.noRuns = noRunsWork
		if errors.Is(p.errs[topWorking], dispatcher.ErrNoIndex) {
			m.noRuns = "no run index: a run that began before top did appears at its next event"
			delete(p.errs, topWorking)
		}
	}
	maps.DeleteFunc(m.stopped, func(_ messages.Ref, s topStop) bool { return now.Sub(s.seen) > topLate })
	listed := map[messages.Ref]bool{}
	for _, r := range p.running {
		ref := messages.Ref{Tenant: r.Tenant, Run: r.ID}
		if s, ok := m.stopped[ref]; ref.Check() != nil || ok && !newer(r, s.at) {
			continue
		}
		listed[ref] = true
		known := m.runs[ref]
		if known == nil {
			if len(m.runs) >= topRuns {
				continue
			}
			known = &topRun{Tenant: ref.Tenant, ID: ref.Run, Since: now, seeded: true}
			m.runs[ref] = known
			delete(m.waiting, ref)
		}
		known.seen, known.Agent, known.Step = now, cmp.Or(known.Agent, r.Agent), max(known.Step, r.Steps)
		if from := cmp.Or(r.Started, r.Queued); from != nil && from.Before(known.Since) {
			known.Since = *from
		}
	}
	maps.DeleteFunc(m.runs, func(ref messages.Ref, r *topRun) bool {
		return r.seeded && slices.Contains(p.tenants, ref.Tenant) && !listed[ref]
	})
}

func newer(r *control.RunSummary, than time.Time) bool {
	return r.Updated != nil && r.Updated.After(than)
}

// stop forgets a run that ended or waits, and remembers when: the index, or older events, may come later. A wait that the
// run has left behind is none.
func (m *topModel) stop(e *messages.Event, now time.Time) {
	run := e.Ref()
	r := m.runs[run]
	if r != nil && r.number > e.Number() {
		return
	}
	delete(m.runs, run)
	m.wait(run, r, e)
	s, ok := m.stopped[run]
	if !ok && len(m.stopped) >= topStopped || s.number > e.Number() {
		return
	}
	m.stopped[run] = topStop{e.Time, e.Number(), now}
}

// wait remembers the agent of a run that begins to wait, and forgets that of one that has ended. It must be called before
// the event is noted as the run's stop.
func (m *topModel) wait(run messages.Ref, r *topRun, e *messages.Event) {
	switch {
	case m.isOver(e):
	case e.Name() == messages.EventRunFinished:
		delete(m.waiting, run)
	case r != nil && len(m.waiting) < topWaiting:
		m.waiting[run] = r.Agent
	case r == nil && len(m.waiting) < topWaiting && m.waiting[run] == "": // its first events may come later
		m.waiting[run] = ""
	}
}

// name notes the agent of a run that works or waits, also when the event that names it was stored late.
func (m *topModel) name(run messages.Ref, agent string) {
	if r := m.runs[run]; r != nil {
		r.Agent = cmp.Or(agent, r.Agent)
	} else if _, ok := m.waiting[run]; ok {
		m.waiting[run] = agent
	}
}

// isOver reports whether an event is older than the one with which its run ended or began to wait: it was stored late.
func (m *topModel) isOver(e *messages.Event) bool { return e.Number() < m.stopped[e.Ref()].number }
