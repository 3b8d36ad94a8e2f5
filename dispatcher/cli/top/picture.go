package top

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

const (
	bold      = "\x1b[1m"
	inverse   = "\x1b[7m"
	topFlex   = 20 // columns at least of what takes the room that is left
	topBars   = 10 // cells of a worker's bar
	topHead   = 2  // lines above the sections
	topFooter = 1  // and below
)

// topTable is a section of the screen.
type topTable struct {
	name    string // of the section; its title and the number of rows stand in the place of the first column's name
	columns []topColumn
	rows    []topRow
	none    string // the text without rows
}

// topColumn is a column of a section.
type topColumn struct {
	name  string
	width int  // in columns of the terminal; 0: what is left
	right bool // its text stands at the right
	least int  // columns that are left for it, without a width. Default topFlex
	spare int  // columns with more are left out first where there is no room; 0: never
}

type topRow struct {
	cells []string
	color string
}

// render is the screen: at most height lines of at most width columns, without line ends. It scrolls no further than
// there are rows.
func (m *topModel) render(width, height int, color bool, now time.Time) []string {
	footer := "q quit · p pause · Tab section · ↑ ↓ scroll"
	if m.held != nil {
		footer = "PAUSED · " + footer
		m, now = m.held, m.heldAt
	}
	paint := func(how, line string) string {
		if !color || how == "" || line == "" {
			return line
		}
		return how + line + render.Normal
	}
	lines := []string{paint(bold, render.Truncate(m.head(now), width)), render.Truncate(m.pace(now), width)}
	tables := m.tables(now)
	wants := make([]int, len(tables))
	for i, t := range tables {
		wants[i] = max(len(t.rows), 1)
	}
	got := shares(wants, height-topHead-topFooter-len(tables), m.selected-1)
	for i, t := range tables {
		offset, how := 0, bold
		if i == m.selected-1 {
			m.offset = max(min(m.offset, len(t.rows)-got[i]), 0)
			offset, how = m.offset, inverse
		}
		columns := t.fitting(width)
		lines = append(lines, paint(how, t.title(columns, width, offset, i == m.selected-1)))
		switch {
		case got[i] == 0:
		case m.problems[t.name] != "" && (t.name != topWorking || len(t.rows) == 0): // of runs there are events too
			lines = append(lines, paint(render.Yellow, render.Truncate("  "+render.Visible(m.problems[t.name]), width)))
		case len(t.rows) == 0:
			lines = append(lines, paint(render.Dim, render.Truncate("  "+t.none, width)))
		default:
			for _, r := range t.rows[offset:min(offset+got[i], len(t.rows))] {
				lines = append(lines, paint(r.color, t.line(columns, r.cells, width)))
			}
		}
	}
	lines = append(lines, paint(render.Dim, render.Truncate(footer, width)))
	return lines[:max(min(height, len(lines)), 0)]
}

// head says what fleet it is.
func (m *topModel) head(now time.Time) string {
	whose, busy, slots := "all tenants", 0, 0
	if m.tenant != "" {
		whose = "tenant " + m.tenant
	}
	for i := range m.workers {
		busy, slots = busy+m.workers[i].Busy, slots+m.workers[i].Slots
	}
	s := fmt.Sprintf("longshore top · %s · %s · %d of %s · %s", now.Format(time.TimeOnly), render.Visible(whose), busy, render.Count(int64(slots), "slot"),
		render.Count(int64(len(m.workers)), "worker"))
	return s
}

// pace says how fast it works.
func (m *topModel) pace(now time.Time) string {
	r := m.rates(now)
	ok := "none ended"
	if ended := r.Completed + r.Failed; ended > 0 {
		ok = fmt.Sprintf("%s%% of %d completed", trimmed(100*float64(r.Completed)/float64(ended)), ended)
	}
	cost := fmt.Sprintf("$%.2f/min", r.Cost)
	if r.Unpriced > 0 {
		cost += "+"
	}
	return fmt.Sprintf("%s started/s · %s ended/s · %s · %s tokens/s · %s", trimmed(r.Started), trimmed(r.Finished), ok, short(r.Tokens), cost)
}

// trimmed has one digit behind the point, unless that is 0.
func trimmed(f float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") }

func short(f float64) string {
	switch {
	case f >= 1e6:
		return trimmed(f/1e6) + "M"
	case f >= 1e4:
		return trimmed(f/1e3) + "k"
	default:
		return fmt.Sprintf("%.0f", f)
	}
}

func (m *topModel) tables(now time.Time) []topTable {
	ago := func(at time.Time) string { return render.Span(now.Sub(at)) }
	workers := topTable{name: topWorkers, none: "no worker answers", columns: []topColumn{
		{},
		{name: "VERSION", width: 12, spare: 3},
		{name: "BUSY", width: 11, right: true},
		{width: topBars + 2, spare: 2},
		{name: "HELD", width: 6, right: true, spare: 1},
		{name: "UP", width: 7, right: true, spare: 4},
		{name: "STATE", width: 6},
	}}
	for i := range m.workers {
		w := &m.workers[i]
		state, color := "works", ""
		if w.Draining {
			state, color = "drains", render.Yellow
		}
		workers.rows = append(workers.rows, topRow{[]string{
			w.Name, cmp.Or(w.Version, "-"), fmt.Sprintf("%d/%d", w.Busy, w.Slots), topBar(w.Busy, w.Slots), strconv.Itoa(w.Held), ago(w.Since), state,
		}, color})
	}
	lanes := topTable{name: topLanes, none: "nothing is queued", columns: []topColumn{
		{},
		{name: "PRIORITY", width: 8},
		{name: "QUEUED", width: 8, right: true},
		{name: "IN FLIGHT", width: 9, right: true},
		{name: "OLDEST", width: 7, right: true},
	}}
	for _, l := range m.lanes {
		oldest := "-"
		if l.Oldest != nil {
			oldest = ago(*l.Oldest)
		}
		lanes.rows = append(lanes.rows, topRow{[]string{
			cmp.Or(l.Tenant, "-"), string(l.Priority), strconv.Itoa(l.Queued), strconv.Itoa(l.InFlight), oldest,
		}, ""})
	}
	runs := topTable{name: topWorking, none: m.noRuns, columns: []topColumn{
		{width: 26},
		{name: "TENANT", width: 10, spare: 1},
		{name: "AGENT", width: 12},
		{name: "STEP", width: 4, right: true},
		{name: "DOES"},
		{name: "FOR", width: 7, right: true},
	}}
	for _, r := range m.working() {
		runs.rows = append(runs.rows, topRow{[]string{r.ID, r.Tenant, cmp.Or(r.Agent, "-"), strconv.Itoa(r.Step), r.Doing, ago(r.Since)}, ""})
	}
	approvals := topTable{name: topApprovals, none: "no call waits for an approval", columns: []topColumn{
		{width: 26},
		{name: "TENANT", width: 10, spare: 1},
		{name: "AGENT", width: 12},
		{name: "CALL", least: 30},
		{name: "FOR", width: 7, right: true},
	}}
	for i := range m.approvals {
		a := &m.approvals[i]
		approvals.rows = append(approvals.rows, topRow{[]string{a.ID, a.Tenant, a.Agent, a.Tool + " " + a.Arguments, ago(a.Since)}, render.Yellow})
	}
	failures := topTable{name: topFailed, none: "no run failed since this began", columns: []topColumn{
		{width: 26},
		{name: "TENANT", width: 10, spare: 1},
		{name: "AGENT", width: 12, spare: 2},
		{name: "WHY", least: 30},
		{name: "AGO", width: 7, right: true},
	}}
	for i := range m.failures {
		f := &m.failures[i]
		why := string(f.Code)
		if f.Message != "" {
			why += ": " + f.Message
		}
		failures.rows = append(failures.rows, topRow{[]string{f.ID, f.Tenant, cmp.Or(f.Agent, "-"), why, ago(f.At)}, render.Red})
	}
	return []topTable{workers, lanes, runs, approvals, failures}
}

// topBar shows how much of a whole is in use.
func topBar(used, all int) string {
	full := 0
	if all > 0 {
		full = max(min(topBars*used/all, topBars), 0)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", topBars-full) + "]"
}

// fitting are the widths of the columns; 0: it is left out.
func (t *topTable) fitting(width int) []int {
	widths := make([]int, len(t.columns))
	out := 0 // columns with more spare than this are left out; 0: nothing is
	for worst := 5; worst >= 0; worst-- {
		used, flex := 0, -1
		for i, c := range t.columns {
			widths[i] = 0
			if out > 0 && c.spare >= out {
				continue
			}
			if widths[i] = c.width; c.width == 0 {
				flex, widths[i] = i, cmp.Or(c.least, topFlex)
			}
			used += widths[i] + 1
		}
		if left := width - used + 1; left >= 0 || worst == 0 {
			widths[flex] += max(left, 0)
			return widths
		}
		out = worst
	}
	return widths
}

// title is the first line of a section.
func (t *topTable) title(columns []int, width, offset int, selected bool) string {
	title := strings.ToUpper(t.name)
	if selected { // color alone would not be visible to all users
		title = "> " + title
	}
	if len(t.rows) > 0 {
		title += " " + strconv.Itoa(len(t.rows))
	}
	if offset > 0 {
		title += " ↓" + strconv.Itoa(offset)
	}
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	names[0] = title
	return t.line(columns, names, width)
}

// line puts cells into their columns. Their texts may be hostile.
func (t *topTable) line(widths []int, cells []string, width int) string {
	var b strings.Builder
	for i, cell := range cells {
		if widths[i] == 0 {
			continue
		}
		text := render.Truncate(render.Visible(cell), widths[i])
		pad := strings.Repeat(" ", widths[i]-render.Columns(text))
		if t.columns[i].right {
			text, pad = pad+text, ""
		}
		b.WriteString(text + pad + " ")
	}
	return render.Truncate(strings.TrimRight(b.String(), " "), width)
}

// shares divides room for rows. Each section has one first, then the selected one all that it wants, then all in turn.
func shares(wants []int, room, selected int) []int {
	got := make([]int, len(wants))
	give := func(i int) bool {
		if room <= 0 || got[i] >= wants[i] {
			return false
		}
		got[i]++
		room--
		return true
	}
	for i := range wants {
		give(i)
	}
	if selected >= 0 {
		for give(selected) {
		}
	}
	for more := true; more; {
		more = false
		for i := range wants {
			more = give(i) || more
		}
	}
	return got
}
