package index

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// Bounds of what a row holds, in bytes. What is in a database's index is short enough for PostgreSQL's.
const (
	maxName   = 512
	maxText   = 2 << 10
	maxLabels = 64
)

// maxRunTools bounds the tools of a run that are told apart.
const maxRunTools = 256

// row is a run. It is the same whatever order its events were applied in.
type row struct {
	control.RunSummary

	seen     numbers
	began    time.Time // submitted, or started, or the first that is known of it
	statusAt uint64    // number of the event that Status is from
	modelAt  uint64    // number of the event that Model is from
	total    bool      // Steps and Usage are those of the result
	charged  bool      // so is cost
	unpriced bool      // a call has no known price
	cost     float64   // of those that have
	first    uint64    // position of its first event: its place in lists
	last     uint64    // position of its newest
	labelled bool      // labels are to be written
	searched string    // its words as they are stored
	tools    map[string]toolTally
	packed   string // tools as they are stored
	was      *share // what it adds to the sums as it is stored; nil: it is not
}

func newRow(ref messages.Ref) *row {
	return &row{RunSummary: *control.NewRunSummary(ref)}
}

// apply takes an event into account, and reports whether it was new.
func (r *row) apply(e *placed) bool {
	n := e.Number()
	if !r.seen.add(n) {
		return false
	}
	if r.first == 0 || e.position < r.first {
		r.first = e.position
	}
	r.last = max(r.last, e.position)
	at := e.Time.UTC().Truncate(time.Microsecond)
	if r.Updated == nil || at.After(*r.Updated) {
		r.Updated = &at
	}
	if r.Queued == nil && r.Started == nil && (r.began.IsZero() || at.Before(r.began)) {
		r.began = at
	}
	switch e.Name() {
	case messages.EventRunQueued:
		r.queued(&e.Event)
	case messages.EventRunStarted:
		if d := readStarted(e.Data); d != nil {
			r.model(n, clean(d.Model, maxName))
			if d.Parent != nil {
				r.Parent = clean(d.Parent.Run, maxName)
			}
		}
	case messages.EventStepStart:
		if !r.total && e.about != nil {
			r.Steps = max(r.Steps, e.about.Step)
		}
	case messages.EventMessageEnd:
		if e.said != nil {
			r.replied(n, e.said)
		}
	case messages.EventToolExecutionEnd:
		if e.called != nil {
			r.ToolCalls++
			if e.called.IsError {
				r.ToolErrors++
			}
			r.called(e.called)
		}
	case messages.EventRunWaiting:
		var d messages.RunWaiting
		_ = json.Unmarshal(e.Data, &d) // it waits, for whatever
		r.status(n, messages.StatusWaiting, clean(d.Reason, maxName), d.Cause)
	case messages.EventRunResumed:
		r.status(n, messages.StatusRunning, "", nil)
	case messages.EventRunFinished:
		r.finish(&e.Event)
	}
	return true
}

func (r *row) queued(e *messages.Event) {
	d := readQueued(e.Data)
	if d == nil {
		return
	}
	if d.Agent != "" { // the result may have told it
		r.Agent = clean(d.Agent, maxName)
	}
	r.Priority, r.Session = messages.Priority(clean(string(d.Priority), maxName)), clean(d.Session, maxName)
	r.Input, r.Labels, r.labelled = clean(d.Input, maxText), labels(d.Labels), true
	r.Queued, r.Started = micros(d.QueuedAt), micros(e.Time)
	r.began = began(&r.RunSummary, r.began)
}

// replied counts a call of a model. Once the run has ended its result has the sums.
func (r *row) replied(n uint64, d *reply) {
	r.ModelCalls++
	r.model(n, modelName(d))
	if !r.total {
		r.Usage = r.Usage.Add(d.Usage)
	}
	switch {
	case r.charged:
	case d.Cost != nil:
		r.cost += *d.Cost
	case !d.Cached:
		r.unpriced = true
	}
}

// called counts a call of a tool.
func (r *row) called(d *call) {
	name := clean(d.ToolName, maxName)
	use, known := r.tools[name]
	if !known && len(r.tools) == maxRunTools {
		return
	}
	if r.tools == nil {
		r.tools = map[string]toolTally{}
	}
	use.calls++
	use.millis = amount(use.millis + amount(d.Millis))
	if d.IsError {
		use.errors++
	}
	r.tools[name] = use
}

// took is how long the run took, in milliseconds; nil: it has not ended.
func (r *row) took() *int64 {
	if r.Started == nil || r.Finished == nil {
		return nil
	}
	ms := r.Finished.Sub(*r.Started).Milliseconds()
	return &ms
}

func modelName(d *reply) string {
	if d.Provider == "" || d.Model == "" {
		return clean(d.Model, maxName)
	}
	return clean(d.Provider+"/"+d.Model, maxName)
}

func (r *row) model(n uint64, name string) {
	if name != "" && n > r.modelAt {
		r.Model, r.modelAt = name, n
	}
}

func (r *row) status(n uint64, s messages.Status, waits string, why *messages.Cause) {
	if r.Finished != nil || n <= r.statusAt {
		return
	}
	r.Status, r.Waits, r.statusAt, r.Code, r.Error = s, waits, n, "", ""
	if why != nil {
		r.Code, r.Error = messages.Code(clean(string(why.Code), maxName)), clean(why.Message, maxText)
	}
}

func (r *row) finish(e *messages.Event) {
	if r.Finished != nil {
		return
	}
	at := e.Time
	if at.IsZero() { // it ended, and the row must say so
		at = time.Unix(0, 0)
	}
	r.Finished, r.Waits, r.Code, r.Error = micros(at), "", "", ""
	res := readFinished(e.Data)
	if res == nil || res.ID == "" { // more is not known
		r.Status = messages.StatusFailed
		return
	}
	r.Status, r.Steps, r.Usage, r.total = res.Status, res.Steps, res.TokenUsage, true
	if !r.Status.Ended() {
		r.Status = messages.StatusFailed
	}
	if res.CostEstimate != nil {
		r.cost, r.unpriced, r.charged = *res.CostEstimate, false, true
	}
	if r.Started == nil {
		r.Started = micros(res.StartedAt)
		r.began = began(&r.RunSummary, r.began)
	}
	if res.Provenance != nil && r.Agent == "" {
		r.Agent = clean(res.Provenance.Agent, maxName)
	}
	if res.Error != nil {
		r.Code, r.Error = messages.Code(clean(string(res.Error.Code), maxName)), clean(res.Error.Message, maxText)
	}
	r.Summary = clean(res.InWords(), maxText)
}

// folded is what a row must remember beyond what it shows.
type folded struct {
	Seen     string `json:"seen"`
	StatusAt uint64 `json:"statusAt,omitempty"`
	ModelAt  uint64 `json:"modelAt,omitempty"`
	Total    bool   `json:"total,omitempty"`
	Charged  bool   `json:"charged,omitempty"`
}

func (r *row) fold() folded {
	return folded{r.seen.String(), r.statusAt, r.modelAt, r.total, r.charged}
}

func (r *row) unfold(f folded) (err error) {
	r.statusAt, r.modelAt, r.total, r.charged = f.StatusAt, f.ModelAt, f.Total, f.Charged
	r.seen, err = parseNumbers(f.Seen)
	return err
}

// began is when a run was submitted, or started; def when that is not known.
func began(r *control.RunSummary, def time.Time) time.Time {
	switch {
	case r.Queued != nil:
		return *r.Queued
	case r.Started != nil:
		return *r.Started
	default:
		return def
	}
}

// priced is the cost, unless a part of it is unknown.
func priced(cost float64, unpriced bool) *float64 {
	if unpriced {
		return nil
	}
	return &cost
}

// words is what is searched, in lower case.
func (r *row) words() string {
	return strings.ToLower(strings.Join([]string{r.ID, r.Input, r.Error, r.Summary}, "\n"))
}

// clean is a text that every database takes, of at most n bytes.
func clean(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func labels(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	out := make(map[string]string, min(len(all), maxLabels))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if len(out) == maxLabels {
			break
		}
		out[clean(k, maxName)] = clean(all[k], maxName)
	}
	return out
}

// micros is a time as databases keep it; nil when it is not known.
func micros(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = time.UnixMicro(t.UnixMicro()).UTC()
	return &t
}

// place is a position or number as databases have it.
func place(n uint64) int64 {
	if n > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}
