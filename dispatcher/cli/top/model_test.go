package top

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// topStart is when the models of these tests begin.
func topStart() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func topEvent(t *testing.T, tenant, run, name string, data any) *messages.Event {
	t.Helper()
	body, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return &messages.Event{Type: "longshore." + name + ".v1", Source: "/tenants/" + tenant, Subject: run, Sequence: "1", Data: body}
}

func ended(status messages.Status, code messages.Code, message string) messages.RunFinished {
	r := messages.AgentResult{Status: status, Provenance: &messages.Provenance{Agent: "writer"}}
	if code != "" {
		r.Error = &messages.RunError{Code: code, Message: message}
	}
	return messages.RunFinished{Result: r}
}

// busy is a model of a fleet with something in every section, and hostile texts in all of them.
func busy(t *testing.T) (m *topModel, now time.Time) {
	t.Helper()
	m = newTopModel("", topStart())
	now = topStart().Add(2 * time.Minute)
	cost := 0.25
	for i := range 30 {
		id := fmt.Sprintf("01JNARUN0000000000000000%02d", i)
		at := now.Add(time.Duration(i-30) * time.Second)
		m.event(topEvent(t, "acme", id, messages.EventRunQueued, messages.RunQueued{Agent: "writer"}), at)
		m.event(topEvent(t, "acme", id, messages.EventStepStart, messages.Step{Step: i + 1}), at)
		m.event(topEvent(t, "acme", id, messages.EventMessageEnd, messages.MessageEnd{Usage: messages.Usage{Total: 2000}, Cost: &cost}), at)
		switch {
		case i%10 == 9:
			m.event(topEvent(t, "acme", id, messages.EventRunFinished,
				ended(messages.StatusFailed, "model_failed", "the \x1b[2Jmodel is \u202egone 二二二, and no one knows when it comes back to us")), at)
		case i%3 == 0:
			m.event(topEvent(t, "acme", id, messages.EventToolExecutionStart, messages.ToolExecution{ToolName: "write\x07_file"}), at)
		default:
			m.event(topEvent(t, "acme", id, messages.EventRunFinished, ended(messages.StatusCompleted, "", "")), at)
		}
	}
	oldest := now.Add(-90 * time.Second)
	m.answer(&topPoll{
		workers: []messages.WorkerStatus{
			{Name: "w-1", Version: "1.2.3", Slots: 64, Busy: 41, Held: 45, Since: topStart().Add(-26 * time.Hour)},
			{Name: "w\x1b]0;gotcha\x07-2-of-a-very-long-name-that-does-not-fit-anywhere", Version: "1.2.4", Slots: 64, Held: 2, Since: topStart(), Draining: true},
		},
		lanes: &control.LaneList{Lanes: []control.LaneStatus{
			{Priority: "wake", Queued: 2, InFlight: 3}, {Tenant: "acme", Priority: "high", Queued: 1204, InFlight: 20, Oldest: &oldest},
		}},
		askedRuns: true,
		approvals: []control.WaitingApproval{
			{Tenant: "acme", ID: "01JNARUN000000000000000099", Agent: "careful", Tool: "shell", Arguments: `{"command":"rm -rf \u001b[31m/"}` + "\x1b[31m", Since: now.Add(-time.Hour)},
		},
	}, now)
	return m, now
}

func TestTopScreens(t *testing.T) {
	for name, tt := range map[string]struct {
		width, height int
		color         bool
		change        func(*topModel, time.Time)
	}{
		"usual":  {width: 80, height: 24},
		"color":  {width: 80, height: 24, color: true},
		"wide":   {width: 160, height: 50},
		"narrow": {width: 40, height: 14},
		"tiny":   {width: 9, height: 4},
		"selected": {width: 80, height: 24, change: func(m *topModel, now time.Time) {
			for _, k := range []string{"tab", "tab", "tab", "down", "down"} {
				m.key(k, now)
			}
		}},
		"paused": {width: 80, height: 24, change: func(m *topModel, now time.Time) {
			m.key("p", now)
			m.failures, m.workers = nil, nil
			clear(m.runs)
		}},
		"problems": {width: 80, height: 24, change: func(m *topModel, now time.Time) {
			m.answer(&topPoll{errs: map[string]error{topWorkers: dispatcher.ErrUnavailable, topLanes: errors.New("a\x1b[2J\nb")}}, now)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m, now := busy(t)
			if tt.change != nil {
				tt.change(m, now)
			}
			lines := m.render(tt.width, tt.height, tt.color, now)
			checkScreen(t, lines, tt.width, tt.height)
			goldenScreen(t, name, lines)
		})
	}
	t.Run("empty", func(t *testing.T) {
		m := newTopModel("acme", topStart())
		m.answer(&topPoll{askedRuns: true, lanes: &control.LaneList{}}, topStart())
		goldenScreen(t, "empty", m.render(80, 24, false, topStart()))
	})
}

func checkScreen(t *testing.T, lines []string, width, height int) {
	t.Helper()
	if len(lines) > height {
		t.Errorf("%d lines in %d", len(lines), height)
	}
	for _, l := range lines {
		for _, code := range []string{bold, render.Dim, render.Red, render.Yellow, inverse, render.Normal} {
			l = strings.ReplaceAll(l, code, "")
		}
		if render.Columns(l) > width {
			t.Errorf("%d columns in %d: %q", render.Columns(l), width, l)
		}
		if strings.ContainsFunc(l, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.Is(unicode.M, r) && !render.IsJoiner(r) }) {
			t.Errorf("it could steer a terminal: %q", l)
		}
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

func goldenScreen(t *testing.T, name string, lines []string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func FuzzTopScreen(f *testing.F) {
	f.Add(80, 24, "name", "\x1b[2J")
	f.Add(0, 0, "", "")
	f.Add(-3, -1, "二二二", "\u202e")
	f.Fuzz(func(t *testing.T, width, height int, name, text string) {
		width, height = max(min(width, 500), -2), max(min(height, 200), -2)
		m := newTopModel("", topStart())
		m.answer(&topPoll{workers: []messages.WorkerStatus{{Name: name, Slots: len(text) - 3, Busy: -len(name)}}}, topStart())
		m.event(topEvent(t, "a", "b", messages.EventToolExecutionStart, messages.ToolExecution{ToolName: text}), topStart())
		m.event(topEvent(t, "a", "c", messages.EventRunFinished, ended("", messages.Code(name), text)), topStart())
		m.key("tab", topStart())
		m.key("down", topStart())
		checkScreen(t, m.render(width, height, true, topStart()), max(width, 0), max(height, 0))
	})
}

func TestTopRates(t *testing.T) {
	m := newTopModel("", topStart())
	cost := 0.01
	at := topStart()
	for second := range 120 {
		at = topStart().Add(time.Duration(second) * time.Second)
		for i := range 3 {
			id := strconv.Itoa(second) + "-" + strconv.Itoa(i)
			m.event(topEvent(t, "a", id, messages.EventRunQueued, messages.RunQueued{}), at)
			m.event(topEvent(t, "a", id, messages.EventMessageEnd, messages.MessageEnd{Usage: messages.Usage{Total: 100}, Cost: &cost}), at)
			status := messages.StatusCompleted
			if i == 0 {
				status = messages.StatusFailed
			}
			m.event(topEvent(t, "a", id, messages.EventRunFinished, ended(status, "", "")), at)
		}
	}
	got := m.rates(at)
	got.Cost = float64(int(got.Cost*100+0.5)) / 100
	want := topRates{Started: 3, Finished: 3, Tokens: 300, Cost: 1.8, Completed: 120, Failed: 60}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := m.rates(at.Add(time.Hour)); got != (topRates{}) {
		t.Errorf("an hour later: %+v", got)
	}
	// Free replies are not those without a price.
	m.event(topEvent(t, "a", "x", messages.EventMessageEnd, messages.MessageEnd{Cached: true}), at)
	m.event(topEvent(t, "a", "y", messages.EventMessageEnd, messages.MessageEnd{}), at)
	if got := m.rates(at).Unpriced; got != 1 {
		t.Errorf("%d calls without a price", got)
	}
}

// What top remembers does not grow with what a fleet does.
func TestTopIsBounded(t *testing.T) {
	m := newTopModel("", topStart())
	for i := range topRuns + 100 {
		tenant, id := "t"+strconv.Itoa(i), "r"+strconv.Itoa(i)
		at := topStart().Add(time.Duration(i) * time.Millisecond)
		m.event(topEvent(t, tenant, id, messages.EventRunQueued, messages.RunQueued{}), at)
		m.event(topEvent(t, tenant, id+"f", messages.EventRunFinished, ended(messages.StatusFailed, "x", strings.Repeat("y", 10_000))), at)
	}
	if len(m.runs) != topRuns || len(m.failures) != topFailures || len(m.tenants) != topTenants || len(m.failures[0].Message) > topMessage+30 {
		t.Errorf("%d runs, %d failures, %d tenants, a message of %d bytes", len(m.runs), len(m.failures), len(m.tenants), len(m.failures[0].Message))
	}
	if _, ok := m.runs[messages.Ref{Tenant: "t1099", Run: "r1099"}]; !ok {
		t.Error("the newest run was forgotten")
	}
	m.answer(&topPoll{}, topStart().Add(2*time.Hour))
	if len(m.runs) != 0 {
		t.Errorf("%d runs of which nothing was heard for hours", len(m.runs))
	}
}

func TestTopPassesOverWhatIsNoEventOfARun(t *testing.T) {
	m := newTopModel("", topStart())
	for name, e := range map[string]*messages.Event{
		"no run":    topEvent(t, "a", messages.NoRun, "auth_denied", nil),
		"no token":  topEvent(t, "a b", "x", messages.EventRunQueued, nil),
		"no source": {Type: "longshore.run_queued.v1", Subject: "x"},
	} {
		m.event(e, topStart())
		if len(m.runs) != 0 || m.rates(topStart()).Started != 0 {
			t.Errorf("%s counts", name)
		}
	}
	broken := topEvent(t, "a", "x", messages.EventRunFinished, nil)
	broken.Data = []byte(`{"result":"`)
	m.event(broken, topStart())
	if len(m.failures) != 1 {
		t.Errorf("an end that cannot be read: %+v", m.failures)
	}
}

// Each key does the same as its siblings.
func TestTopKeys(t *testing.T) {
	for name, tt := range map[string]struct {
		keys             []string
		selected, offset int
		held             bool
	}{
		"none of ours":   {keys: []string{"x", "esc", "pgup", "Tab"}},
		"next":           {keys: []string{"tab", "right"}, selected: 2},
		"around":         {keys: []string{"tab", "tab", "tab", "tab", "tab", "tab"}},
		"previous":       {keys: []string{"shift+tab", "left"}, selected: 4},
		"down":           {keys: []string{"tab", "j", "down", "j", "k"}, selected: 1, offset: 2},
		"up at the top":  {keys: []string{"tab", "up", "k"}, selected: 1},
		"held":           {keys: []string{"p", "tab"}, selected: 1, held: true},
		"no longer held": {keys: []string{"p", "tab", "down", "space"}, selected: 1, offset: 1},
	} {
		m := newTopModel("", topStart())
		for _, key := range tt.keys {
			if !m.key(key, topStart()) {
				t.Errorf("%s: %s ends it", name, key)
			}
		}
		shown := m
		if m.held != nil {
			shown = m.held
		}
		if shown.selected != tt.selected || shown.offset != tt.offset || (m.held != nil) != tt.held {
			t.Errorf("%s: section %d, offset %d, held %t", name, shown.selected, shown.offset, m.held != nil)
		}
		for _, key := range []string{"q", "Q", "ctrl+c", "ctrl+d"} {
			if m.key(key, topStart()) {
				t.Errorf("%s: %s does not end it", name, key)
			}
		}
	}
}

func TestShares(t *testing.T) {
	for name, tt := range map[string]struct {
		wants          []int
		room, selected int
		want           []int
	}{
		"enough":   {[]int{1, 2, 3}, 10, -1, []int{1, 2, 3}},
		"in turn":  {[]int{9, 9, 1}, 7, -1, []int{3, 3, 1}},
		"selected": {[]int{9, 9, 9}, 7, 1, []int{1, 5, 1}},
		"few":      {[]int{9, 9, 9}, 2, 2, []int{1, 1, 0}},
		"none":     {[]int{9, 9}, -4, 0, []int{0, 0}},
	} {
		if got := shares(tt.wants, tt.room, tt.selected); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func topRunning(id string, updated time.Time) *control.RunSummary {
	from := topStart().Add(-time.Hour)
	return &control.RunSummary{Tenant: "acme", ID: id, Agent: "writer", Status: messages.StatusRunning, Steps: 3, Started: &from, Updated: &updated}
}

// The index may be behind: what events said since counts, and what it no longer lists is gone.
func TestTopSeedsFromTheIndex(t *testing.T) {
	m, now := newTopModel("acme", topStart()), topStart()
	answer := func(running ...*control.RunSummary) []string {
		m.answer(&topPoll{running: running, tenants: []string{"acme"}, askedRuns: true}, now)
		var ids []string
		for _, r := range m.working() {
			ids = append(ids, r.ID)
		}
		return ids
	}
	if diff := cmp.Diff([]string{"a", "b"}, answer(topRunning("a", now), topRunning("b", now))); diff != "" {
		t.Error(diff)
	}
	ends := topEvent(t, "acme", "a", messages.EventRunFinished, ended(messages.StatusCompleted, "", ""))
	ends.Time = now.Add(time.Second)
	m.event(ends, now)
	if diff := cmp.Diff([]string{"b"}, answer(topRunning("a", now), topRunning("b", now))); diff != "" {
		t.Errorf("the index is behind: %s", diff)
	}
	waits := topEvent(t, "acme", "b", messages.EventRunWaiting, messages.RunWaiting{Reason: queue.ParkApproval})
	waits.Time = now.Add(time.Second)
	m.event(waits, now)
	if diff := cmp.Diff([]string{"b"}, answer(topRunning("b", now.Add(time.Minute)))); diff != "" {
		t.Errorf("it changed since: %s", diff)
	}
	if got := answer(); got != nil {
		t.Errorf("it is no longer listed: %v", got)
	}
	m.event(topEvent(t, "acme", "c", messages.EventStepStart, messages.Step{Step: 1}), now)
	if diff := cmp.Diff([]string{"c"}, answer()); diff != "" {
		t.Errorf("an event came, and the index does not know it yet: %s", diff)
	}
	m.answer(&topPoll{errs: map[string]error{topWorking: dispatcher.ErrNoIndex}, askedRuns: true}, now)
	if !strings.HasPrefix(m.noRuns, "no run index: ") || len(m.problems) > 0 {
		t.Error(m.noRuns, m.problems)
	}
}

// A run keeps the name of its agent over a wait, however long it waits.
func TestTopKeepsTheAgentOverAWait(t *testing.T) {
	m, now := newTopModel("acme", topStart()), topStart()
	happens := func(n int, name string, data any) {
		e := topEvent(t, "acme", "x", name, data)
		e.Sequence = strconv.Itoa(n)
		m.event(e, now)
	}
	happens(1, messages.EventRunQueued, messages.RunQueued{Agent: "writer"})
	for n := 2; n < 8; n += 2 {
		happens(n, messages.EventRunWaiting, messages.RunWaiting{Reason: queue.ParkApproval})
		if got := m.working(); len(got) != 0 {
			t.Fatalf("it waits, and is shown: %+v", got[0])
		}
		now = now.Add(2 * topLate)
		m.answer(&topPoll{askedRuns: true, errs: map[string]error{topWorking: dispatcher.ErrNoIndex}}, now)
		happens(n+1, messages.EventRunResumed, messages.RunWaiting{Reason: queue.ParkApproval})
		if got := m.working(); len(got) != 1 || got[0].Agent != "writer" {
			t.Fatalf("after a wait %d runs work, want one of the writer: %+v", len(got), m.runs[messages.Ref{Tenant: "acme", Run: "x"}])
		}
	}
	happens(8, messages.EventRunWaiting, messages.RunWaiting{Reason: queue.ParkApproval})
	happens(9, messages.EventRunFinished, ended(messages.StatusCancelled, "", ""))
	if len(m.waiting) != 0 {
		t.Errorf("it ended, and is remembered: %v", m.waiting)
	}
}

// Events that are stored late do not bring back a run that has ended or waits, nor keep one from working that continued.
func TestTopOfEventsStoredOutOfOrder(t *testing.T) {
	number := func(n int, e *messages.Event) *messages.Event { e.Sequence = strconv.Itoa(n); return e }
	story := func(run string) []*messages.Event {
		return []*messages.Event{
			number(1, topEvent(t, "acme", run, messages.EventRunQueued, messages.RunQueued{Agent: "writer"})),
			number(2, topEvent(t, "acme", run, messages.EventRunWaiting, messages.RunWaiting{Reason: "approval"})),
			number(3, topEvent(t, "acme", run, messages.EventRunResumed, messages.RunWaiting{Reason: "approval"})),
			number(4, topEvent(t, "acme", run, messages.EventStepStart, messages.Step{Step: 1})),
			number(5, topEvent(t, "acme", run, messages.EventMessageEnd, messages.MessageEnd{Usage: messages.Usage{Total: 10}})),
			number(6, topEvent(t, "acme", run, messages.EventToolExecutionStart, messages.ToolExecution{ToolName: "t"})),
			number(7, topEvent(t, "acme", run, messages.EventRunFinished, ended(messages.StatusCompleted, "", ""))),
		}
	}
	shown := func(events []*messages.Event) topShot {
		m, now := newTopModel("acme", topStart()), topStart().Add(time.Second)
		for _, e := range events {
			m.event(e, now)
		}
		return m.shot(now.Add(time.Second))
	}
	same := cmpopts.IgnoreUnexported(topRun{})
	for n := range story("x") {
		want := shown(story("x")[:n+1])
		backwards := story("x")[:n+1]
		slices.Reverse(backwards)
		if diff := cmp.Diff(want, shown(backwards), same); diff != "" {
			t.Errorf("%d events backwards: %s", n+1, diff)
		}
		first := append([]*messages.Event{story("x")[n]}, story("x")[:n]...)
		if diff := cmp.Diff(want, shown(first), same); diff != "" {
			t.Errorf("the last of %d events first: %s", n+1, diff)
		}
	}
}
