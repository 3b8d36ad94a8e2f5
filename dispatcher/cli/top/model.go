package top

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// Bounds of what `top` remembers, whatever a fleet does.
const (
	topSeconds  = 60        // for how many it counts
	topRecent   = 10        // seconds that rates are averaged over
	topRuns     = 1000      // that it knows to be working
	topStopped  = 10_000    // whose end it remembers against an index that is behind
	topWaiting  = 10_000    // whose agent it remembers while they wait; of others the index tells it
	topFailures = 100       // that it keeps
	topTenants  = 16        // whose approvals it asks for
	topMessage  = 300       // bytes of a failure's message
	topQuiet    = time.Hour // without a word: its end was missed
)

// topModel is what `top` knows. It changes by events, by answers and by keys, and by nothing else.
type topModel struct {
	tenant string // that it is about; empty: all
	began  time.Time

	seconds  [topSeconds]topSecond // by the second modulo topSeconds
	runs     map[messages.Ref]*topRun
	noRuns   string                   // the text when none works
	stopped  map[messages.Ref]topStop // runs that ended or began to wait within topLate
	waiting  map[messages.Ref]string  // agents of runs that wait: the event with which a run continues does not name it
	failures []topFailure             // newest first
	tenants  []string                 // seen, newest first

	polled    time.Time // zero: nothing was answered yet
	workers   []messages.WorkerStatus
	lanes     []control.LaneStatus
	approvals []control.WaitingApproval
	problems  map[string]string // by section: why it could not be asked for

	selected int // section, from 1; 0: none
	offset   int // rows of it that are scrolled by

	held   *topModel // what is shown while it is paused, as of heldAt; nil: it is not
	heldAt time.Time
}

// topSecond counts what happened within a second.
type topSecond struct {
	at                           int64 // in Unix time
	started                      int
	completed, failed, cancelled int
	tokens                       int64
	cost                         float64
	unpriced                     int // model calls whose cost is unknown
}

// topRun is a run that works.
type topRun struct {
	Tenant string    `json:"tenant"`
	ID     string    `json:"id"`
	Agent  string    `json:"agent,omitempty"` // empty: not known yet
	Step   int       `json:"step,omitempty"`
	Doing  string    `json:"doing,omitempty"`
	Since  time.Time `json:"since"` // when it began, or was seen first

	seen   time.Time
	number uint64 // of its newest event
	doing  uint64 // the number of the event that Doing is from
	seeded bool   // only the index named it: no event of it came
}

// topFailure is a run that failed.
type topFailure struct {
	Tenant  string        `json:"tenant"`
	ID      string        `json:"id"`
	Agent   string        `json:"agent,omitempty"`
	Code    messages.Code `json:"code,omitempty"`
	Message string        `json:"message,omitempty"`
	At      time.Time     `json:"at"`
}

// topPoll is what a fleet answered.
type topPoll struct {
	workers   []messages.WorkerStatus
	lanes     *control.LaneList
	approvals []control.WaitingApproval
	running   []*control.RunSummary // by the index
	tenants   []string              // whose running runs those are
	askedRuns bool                  // for running runs and approvals
	errs      map[string]error      // by section
}

// Names of sections.
const (
	topWorkers   = "workers"
	topLanes     = "lanes"
	topWorking   = "runs"
	topApprovals = "approvals"
	topFailed    = "failures"
)

func newTopModel(tenant string, now time.Time) *topModel {
	m := &topModel{
		tenant: tenant, noRuns: noRunsWork, began: now, runs: map[messages.Ref]*topRun{}, stopped: map[messages.Ref]topStop{},
		waiting: map[messages.Ref]string{}, problems: map[string]string{},
	}
	m.see(cmp.Or(tenant, messages.DefaultTenant))
	return m
}

// event takes an event into account that came now. What cannot be read of it is left out.
func (m *topModel) event(e *messages.Event, now time.Time) {
	run := e.Ref()
	if run.Check() != nil || run.Run == messages.NoRun {
		return
	}
	m.see(run.Tenant)
	second := m.second(now)
	switch e.Name() {
	case messages.EventRunQueued:
		var d messages.RunQueued
		_ = json.Unmarshal(e.Data, &d) // it has begun, whatever else
		second.started++
		m.works(e, now, func(*topRun) {})
		m.name(run, d.Agent)
	case messages.EventRunWaiting:
		m.stop(e, now)
	case messages.EventStepStart:
		var d messages.Step
		_ = json.Unmarshal(e.Data, &d)
		m.works(e, now, func(r *topRun) {
			r.Step = max(r.Step, d.Step)
			r.does("thinking", e.Number())
		})
	case messages.EventToolExecutionStart:
		var d messages.ToolExecution
		_ = json.Unmarshal(e.Data, &d)
		m.works(e, now, func(r *topRun) { r.does(strict.Clip(d.ToolName, topMessage), e.Number()) })
	case messages.EventMessageEnd:
		var d messages.MessageEnd
		if json.Unmarshal(e.Data, &d) == nil {
			second.spend(&d)
		}
		m.works(e, now, func(*topRun) {})
	case messages.EventRunFinished:
		m.stop(e, now)
		m.finished(e, run, second, now)
	default:
		m.works(e, now, func(*topRun) {})
	}
}

// works notes an event of a run that works. One that is older than the end of its run, or its wait, says no more than what
// was counted.
func (m *topModel) works(e *messages.Event, now time.Time, note func(*topRun)) {
	if m.isOver(e) {
		return
	}
	r := m.run(e.Ref(), now)
	r.number = max(r.number, e.Number())
	note(r)
}

// does notes what an event says the run does, unless a newer one has said it.
func (r *topRun) does(what string, number uint64) {
	if number >= r.doing {
		r.Doing, r.doing = what, number
	}
}

func (s *topSecond) spend(d *messages.MessageEnd) {
	s.tokens += max(d.Usage.Total, 0)
	switch {
	case d.Cost != nil:
		s.cost += max(*d.Cost, 0)
	case !d.Cached:
		s.unpriced++
	}
}

func (m *topModel) finished(e *messages.Event, run messages.Ref, second *topSecond, now time.Time) {
	var d messages.RunFinished
	_ = json.Unmarshal(e.Data, &d) // without a status it has failed
	switch r := &d.Result; r.Status {
	case messages.StatusCompleted:
		second.completed++
	case messages.StatusCancelled:
		second.cancelled++
	default:
		second.failed++
		f := topFailure{Tenant: run.Tenant, ID: run.Run, At: now}
		if r.Provenance != nil {
			f.Agent = r.Provenance.Agent
		}
		if r.Error != nil {
			f.Code, f.Message = r.Error.Code, strict.Clip(r.Error.Message, topMessage)
		}
		m.failures = slices.Insert(m.failures, 0, f)
		m.failures = m.failures[:min(topFailures, len(m.failures))]
	}
}

// second is the counts of this second.
func (m *topModel) second(now time.Time) *topSecond {
	at := now.Unix()
	s := &m.seconds[at%topSeconds]
	if s.at != at {
		*s = topSecond{at: at}
	}
	return s
}

// run is a run that works. When there are too many, the one with the oldest last event is forgotten.
func (m *topModel) run(run messages.Ref, now time.Time) *topRun {
	r, ok := m.runs[run]
	if !ok {
		if len(m.runs) >= topRuns {
			var oldest *topRun
			for _, r := range m.runs {
				if oldest == nil || r.seen.Before(oldest.seen) {
					oldest = r
				}
			}
			delete(m.runs, messages.Ref{Tenant: oldest.Tenant, Run: oldest.ID})
		}
		r = &topRun{Tenant: run.Tenant, ID: run.Run, Agent: m.waiting[run], Since: now}
		m.runs[run] = r
		delete(m.waiting, run)
	}
	r.seen, r.seeded = now, false
	return r
}

// see remembers a tenant.
func (m *topModel) see(tenant string) {
	if len(m.tenants) > 0 && m.tenants[0] == tenant {
		return
	}
	m.tenants = slices.DeleteFunc(m.tenants, func(t string) bool { return t == tenant })
	m.tenants = slices.Insert(m.tenants, 0, tenant)
	m.tenants = m.tenants[:min(topTenants, len(m.tenants))]
}

// answer takes in what the fleet answered. What could not be asked for stays as it was, and says why.
func (m *topModel) answer(p *topPoll, now time.Time) {
	m.polled = now
	maps.DeleteFunc(m.runs, func(_ messages.Ref, r *topRun) bool { return now.Sub(r.seen) > topQuiet })
	if p.errs[topWorkers] == nil {
		m.workers = p.workers
	}
	m.seed(p, now)
	if p.lanes != nil {
		m.lanes = p.lanes.Lanes
		for i := range min(topTenants, len(m.lanes)) {
			if t := m.lanes[i].Tenant; t != "" && (m.tenant == "" || t == m.tenant) {
				m.see(t)
			}
		}
	}
	sections := []string{topWorkers, topLanes}
	if p.askedRuns {
		sections = append(sections, topWorking, topApprovals)
		if p.errs[topApprovals] == nil {
			m.approvals = p.approvals
		}
	}
	for _, name := range sections {
		if err := p.errs[name]; err != nil {
			m.problems[name] = topProblem(err)
		} else {
			delete(m.problems, name)
		}
	}
}

// topProblem is an error in a few words.
func topProblem(err error) string {
	switch {
	case errors.Is(err, dispatcher.ErrUnavailable):
		return "no dispatcher answers"
	case errors.Is(err, dispatcher.ErrBound):
		return "not for a user that is bound to a tenant"
	default:
		return strict.Clip(render.Explain(err, messages.Ref{}).Error(), topMessage)
	}
}

// topRates is how fast a fleet works.
type topRates struct {
	Started  float64 `json:"startedPerSecond"`
	Finished float64 `json:"finishedPerSecond"`
	Tokens   float64 `json:"tokensPerSecond"`
	Cost     float64 `json:"costPerMinute"` // in US dollars, without what has no known price
	// Of the last minute, or since `top` began.
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	Unpriced  int `json:"unpricedCalls,omitempty"`
}

// rates of the seconds before now. The current second does not count, but at the beginning.
func (m *topModel) rates(now time.Time) topRates {
	over := now.Sub(m.began).Seconds()
	recent, minute := min(max(over, 1), topRecent), min(max(over, 1), topSeconds)
	var r topRates
	var started, finished int
	var tokens int64
	for i := range m.seconds {
		s := &m.seconds[i]
		age := now.Unix() - s.at
		if age < 0 || age >= topSeconds {
			continue
		}
		r.Completed, r.Failed, r.Cancelled = r.Completed+s.completed, r.Failed+s.failed, r.Cancelled+s.cancelled
		r.Cost += s.cost
		r.Unpriced += s.unpriced
		if age < topRecent {
			started += s.started
			finished += s.completed + s.failed + s.cancelled
			tokens += s.tokens
		}
	}
	r.Started, r.Finished, r.Tokens = float64(started)/recent, float64(finished)/recent, float64(tokens)/recent
	r.Cost *= 60 / minute
	return r
}

// working are the runs that work, the longest first.
func (m *topModel) working() []*topRun {
	out := make([]*topRun, 0, len(m.runs))
	for _, r := range m.runs {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *topRun) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// topShot is what `top` prints where there is no screen.
type topShot struct {
	Time      time.Time                 `json:"time"`
	Rates     topRates                  `json:"rates"`
	Workers   []messages.WorkerStatus   `json:"workers"`
	Lanes     []control.LaneStatus      `json:"lanes"`
	Runs      []*topRun                 `json:"runs"` // that are being worked
	Approvals []control.WaitingApproval `json:"approvals"`
	Failures  []topFailure              `json:"failures"` // since `top` began, newest first
	Problems  map[string]string         `json:"problems,omitempty"`
}

func (m *topModel) shot(now time.Time) topShot {
	return topShot{
		Time: now.UTC(), Rates: m.rates(now), Workers: orEmpty(m.workers), Lanes: orEmpty(m.lanes), Runs: m.working(),
		Approvals: orEmpty(m.approvals), Failures: orEmpty(m.failures), Problems: m.problems,
	}
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// key does what a key asks for, by the name that Bubble Tea gives it. It is false when top is to end.
func (m *topModel) key(name string, now time.Time) bool {
	const sections = 5
	switch name {
	case "q", "Q", "ctrl+c", "ctrl+d":
		return false
	case "p", "space":
		if m.held == nil {
			m.hold(now)
		} else {
			m.selected, m.offset, m.held = m.held.selected, m.held.offset, nil
		}
		return true
	}
	if m.held != nil {
		return m.held.key(name, now)
	}
	switch name {
	case "tab", "right":
		m.selected, m.offset = (m.selected+1)%(sections+1), 0
	case "shift+tab", "left":
		m.selected, m.offset = (m.selected+sections)%(sections+1), 0
	case "j", "down":
		m.offset++ // render knows where the end is
	case "k", "up":
		m.offset = max(m.offset-1, 0)
	}
	return true
}

// hold keeps what is known now, to be shown while the model continues.
func (m *topModel) hold(now time.Time) {
	held := *m
	held.failures, held.problems, held.runs = slices.Clone(m.failures), maps.Clone(m.problems), map[messages.Ref]*topRun{}
	for ref, r := range m.runs {
		run := *r
		held.runs[ref] = &run
	}
	m.held, m.heldAt = &held, now
}
