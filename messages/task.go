// Package messages is the contract: everything that travels between backends, dispatcher, workers and watchers,
// and the subjects it travels on.
//
// A backend makes a [Task] and publishes it on [Ref.TaskSubject], or sends it with the client of package dispatcher. [Event]
// values tell what the run does, and [AgentResult] how it ended. [Definition] is what an agent is. Errors are
// [FieldError], of an input, and [RunError] with one of the [Codes].
//
// What most backends do not need is in packages below it: package record has the log of a run, package control what operators ask the
// dispatcher for and what it answers, package queue the lanes, quotas and reasons for which runs wait, and package logentry the
// lines of logs.
//
// Everything that comes from outside is decoded by [strict.Decode], which is stricter than encoding/json: unknown, doubled
// and other-case keys, null, invalid UTF-8 and trailing data are errors that name the field ([FieldError]).
//
// The package links only the standard library and does no I/O.
package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Priority of a task.
type Priority string

// Priorities that a task may have.
const (
	PriorityHigh   Priority = "high"
	PriorityNormal Priority = "normal"
	PriorityLow    Priority = "low"

	PriorityWake Priority = "wake" // wake-ups and errands; not for submits
)

// Wakes reports whether it is the priority of wake-ups and errands.
func (p Priority) Wakes() bool { return p == PriorityWake }

// Valid reports whether a task may have it.
func (p Priority) Valid() bool { return p == PriorityHigh || p == PriorityNormal || p == PriorityLow }

// Limits of size, in bytes and counts.
const (
	MaxInput   = 1 << 20  // text of a task's input
	MaxPayload = 64 << 10 // an encoded entry, beyond which it goes to blobs
	maxLabels  = 64
	maxLabel   = 256 // a label's key or value
	// MaxLabelsSize is for all labels as JSON. They fit an event; only labels full of characters that JSON escapes
	// reach it.
	maxLabelsSize = 40 << 10
	maxContext    = 256 << 10
	MaxStepsOf    = 10_000
)

// maxTaskDepth is how deep the arrays and objects of a task may be nested: what wraps it, as a record does, must still be
// readable.
const maxTaskDepth = 32

// Task asks for work. It is what any NATS client may publish, as JSON, on Ref.TaskSubject.
type Task struct {
	ID       string            `json:"id,omitempty" pattern:"^([A-Za-z0-9-]|[A-Za-z0-9_-]{2,64})?$"`     // run id, unique per tenant; generated when absent
	Tenant   string            `json:"tenant,omitempty" pattern:"^([A-Za-z0-9-]|[A-Za-z0-9_-]{2,64})?$"` // default "default"
	Agent    string            `json:"agent,omitempty" pattern:"^[A-Za-z0-9_-]{0,64}$"`                  // default "default"
	Input    Input             `json:"input"`                                                            // what to do: a string, or an array of content blocks
	Context  json.RawMessage   `json:"context,omitempty"`                                                // an object of facts for the agent
	Session  string            `json:"session,omitempty" pattern:"^[A-Za-z0-9_-]{0,64}$"`                // names a conversation across runs
	Priority Priority          `json:"priority,omitempty"`                                               // default normal
	Labels   map[string]string `json:"labels,omitempty" maxProperties:"64"`                              // for filters; never shown to the model
	Limits   *Limits           `json:"limits,omitempty"`                                                 // may only narrow what the agent grants
	Plan     *Plan             `json:"plan,omitempty"`                                                   // what to do, step by step; no planning call is made
	Deadline *time.Time        `json:"deadline,omitempty"`                                               // the run fails when it has not ended by then
	// NotBefore is the earliest time at which the run may begin, a year ahead at most. What has passed is at once.
	NotBefore   *time.Time `json:"notBefore,omitempty"`
	Traceparent string     `json:"traceparent,omitempty"` // of the W3C: the span of who submits; the run is in its trace
	// OutputSchema is a JSON Schema of the final answer. Only a task whose agent has none may have one.
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Workspace names a folder that runs of the tenant share, one at a time, instead of one of the run's own.
	Workspace string `json:"workspace,omitempty" pattern:"^[A-Za-z0-9_-]{0,64}$"`
	// Files are what the run's folder holds before the first step.
	Files []TaskFile `json:"files,omitempty" maxItems:"1000"`
	// Manifest is the hash of an uploaded list of files, as package manifest encodes it, instead of Files: for whole folders.
	Manifest string `json:"manifest,omitempty" pattern:"^([0-9a-f]{64})?$"`
	// Seed makes what the platform itself draws or may order freely the same each time: calls are made one after the
	// other, and a program that embeds the loop draws its ids from it.
	Seed *int64 `json:"seed,omitempty"`
	// Webhook is told when the run has ended.
	Webhook *Webhook `json:"webhook,omitempty"`
	// Concurrency lets few of the tenant's tasks with the same key work at once; the others wait.
	Concurrency *Concurrency `json:"concurrency,omitempty"`
	// Requires are labels that the worker must have, such as {"gpu": "true"}; until there is one, the run waits.
	Requires Labels `json:"requires,omitempty" maxProperties:"16"`
	// By is who submits it: whose key it was over HTTP with authentication, else who the client says to be.
	By string `json:"by,omitempty" maxLength:"256"`
}

// Limits of one run.
type Limits struct {
	MaxSteps int `json:"maxSteps,omitempty" minimum:"1" maximum:"10000"`
	Caps
}

// Input is what a task asks for. On the wire it is a string or an array of blocks: text, and images and files
// for models that take them.
type Input []Block

// TextInput is an Input of one text.
func TextInput(s string) Input { return Input(TextContent(s)) }

// MarshalJSON writes a single text as a string.
func (in Input) MarshalJSON() ([]byte, error) {
	if len(in) == 0 {
		return []byte(`[]`), nil // not null, which decoders refuse
	}
	if len(in) == 1 && in[0] == (Block{Text: in[0].Text}) {
		return json.Marshal(in[0].Text)
	}
	return json.Marshal([]Block(in))
}

// UnmarshalJSON reads both forms, strictly.
func (in *Input) UnmarshalJSON(data []byte) error {
	var first byte
	if len(data) > 0 {
		first = data[0]
	}
	switch first {
	case '"':
		var s string
		if err := strict.Decode(data, &s); err != nil {
			return err
		}
		*in = TextInput(s)
		return nil
	case '[', 'n': // null has an error of its own
		return strict.Decode(data, (*[]Block)(in))
	default:
		return strict.Mismatch(data, "a string or an array")
	}
}

// Text joins the blocks.
func (in Input) Text() string { m := Message{Content: in}; return m.Text() }

// Ref is the run that the task becomes.
func (t *Task) Ref() Ref { return Ref{t.Tenant, t.ID} }

//nolint:gochecknoglobals // a constant table
var fleetOnly = map[string]bool{"parent": true} // fields that a run may have and no task

// DecodeTask reads a task strictly, fills its defaults and checks it; the error is a *FieldError.
// `description` is accepted as another name of `input`. An absent id stays absent.
func DecodeTask(data []byte) (*Task, error) {
	t, err := parseTask(data)
	if err != nil {
		return nil, err
	}
	t.SetDefaults()
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return t, nil
}

// DecodeTaskFor is DecodeTask for a task that was published on the subject of a run and priority: they hold, and a
// body that disagrees is a *FieldError.
func DecodeTaskFor(run Ref, p Priority, data []byte) (*Task, error) {
	t, err := parseTask(data)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct{ name, body, subject string }{
		{"id", t.ID, run.Run}, {"tenant", t.Tenant, run.Tenant}, {"priority", string(t.Priority), string(p)},
	} {
		if f.body != "" && f.body != f.subject {
			return nil, &FieldError{Field: f.name, Reason: fmt.Sprintf("is %q, but the task was published for %q", strict.Clip(f.body, strict.MaxToken), f.subject)}
		}
	}
	t.ID, t.Tenant, t.Priority = run.Run, run.Tenant, p
	t.SetDefaults()
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return t, nil
}

func parseTask(data []byte) (*Task, error) {
	var wire struct {
		Task
		Description Input `json:"description,omitempty"`
	}
	if err := strict.DecodeDepth("task", maxTaskDepth, data, &wire); err != nil {
		if fe, ok := errors.AsType[*FieldError](err); ok && fleetOnly[fe.Field] {
			fe.Reason = "is set by the fleet alone: the tool delegate makes the runs that have one"
		}
		return nil, err
	}
	t := wire.Task
	if wire.Description != nil {
		if t.Input != nil {
			return nil, &FieldError{Field: "description", Reason: "give either input or description, not both"}
		}
		t.Input = wire.Description
	}
	return &t, nil
}

// SetDefaults fills tenant, agent and priority.
func (t *Task) SetDefaults() {
	if t.Tenant == "" {
		t.Tenant = DefaultTenant
	}
	if t.Agent == "" {
		t.Agent = DefaultAgent
	}
	if t.Priority == "" {
		t.Priority = PriorityNormal
	}
	if c := t.Concurrency; c != nil && c.Limit == 0 {
		t.Concurrency = &Concurrency{c.Key, 1} // a copy: others may share the old one
	}
}

// Validate returns a *FieldError for the first field that is wrong. An empty id is allowed.
func (t *Task) Validate() error {
	for _, f := range []struct {
		name, value string
		optional    bool
	}{{"id", t.ID, true}, {"tenant", t.Tenant, false}, {"agent", t.Agent, false}, {"session", t.Session, true}, {"workspace", t.Workspace, true}} {
		if f.optional && f.value == "" {
			continue
		}
		if err := strict.CheckToken(f.name, f.value); err != nil {
			return err
		}
	}
	if t.ID == NoRun {
		return &FieldError{Field: "id", Reason: "_ is reserved: choose another id"}
	}
	if t.Tenant == NoRun {
		return &FieldError{Field: "tenant", Reason: "_ is taken: it stands for no tenant"}
	}
	if !t.Priority.Valid() {
		return &FieldError{Field: "priority", Reason: "must be high, normal or low"}
	}
	if err := t.Input.check(); err != nil {
		return err
	}
	if err := checkContext(t.Context); err != nil {
		return err
	}
	if err := CheckLabels(t.Labels); err != nil {
		return err
	}
	if t.Limits != nil && (t.Limits.MaxSteps < 0 || t.Limits.MaxSteps > MaxStepsOf) {
		return &FieldError{Field: "limits.maxSteps", Reason: fmt.Sprintf("must be 1 to %d", MaxStepsOf)}
	}
	if err := checkOutputSchema(t.OutputSchema); err != nil {
		return err
	}
	if t.Limits != nil {
		if err := t.Limits.check("limits."); err != nil {
			return err
		}
	}
	if t.Webhook != nil {
		if err := t.Webhook.Check("webhook.", taskEnds()...); err != nil {
			return err
		}
	}
	if d := t.Deadline; d != nil && (d.Year() < 1 || d.Year() > 9999) {
		return &FieldError{Field: "deadline", Reason: "is out of range"}
	}
	if err := t.checkNotBefore(); err != nil {
		return err
	}
	if t.Plan != nil {
		if err := t.Plan.Validate(); err != nil {
			return strict.Under("plan", err)
		}
		if len(t.OutputSchema) > 0 {
			return &FieldError{Field: "outputSchema", Reason: noSchemaOfPlan}
		}
	}
	if len(t.OutputSchema) > 0 {
		if err := CheckSchema(t.OutputSchema); err != nil {
			return strict.Under("outputSchema", err)
		}
	}
	if t.Concurrency != nil {
		if err := t.Concurrency.check(); err != nil {
			return err
		}
	}
	if err := checkRequires(t.Requires); err != nil {
		return err
	}
	if err := t.checkFiles(); err != nil {
		return err
	}
	if err := strict.CheckText("by", t.By, MaxAuthor); err != nil {
		return err
	}
	return checkTraceparent(t.Traceparent)
}

// CheckInput refuses an input of more bytes than a fleet takes; 0 is the limit of every fleet, MaxInput.
func (t *Task) CheckInput(most int) error {
	if most > 0 && t.Input.Size() > most {
		return &FieldError{Field: "input", Reason: fmt.Sprintf("larger than %d bytes, which LONGSHORE_MAX_INPUT allows", most)}
	}
	return nil
}

func checkContext(context json.RawMessage) error {
	switch {
	case len(context) == 0:
		return nil
	case len(context) > maxContext:
		return &FieldError{Field: "context", Reason: fmt.Sprintf("larger than %d bytes", maxContext)}
	case context[0] != '{':
		return &FieldError{Field: "context", Reason: "must be an object"}
	}
	// A task that was not decoded may hold anything.
	var free json.RawMessage
	return strict.Under("context", strict.DecodeDepth(strict.Body, maxTaskDepth-1, context, &free))
}

// CheckLabels returns a *FieldError for the first label of a task, a batch or a feedback that is wrong.
func CheckLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return &FieldError{Field: "labels", Reason: fmt.Sprintf("more than %d", maxLabels)}
	}
	for k, v := range labels {
		if k == "" {
			return &FieldError{Field: "labels", Reason: "an empty name"}
		}
		if err := strict.CheckText("labels."+strict.Shown(k), k, maxLabel); err != nil {
			return err
		}
		if err := strict.CheckText("labels."+strict.Shown(k), v, maxLabel); err != nil {
			return err
		}
	}
	if strict.Larger(labels, maxLabelsSize) {
		return &FieldError{Field: "labels", Reason: fmt.Sprintf("larger than %d bytes as JSON", maxLabelsSize)}
	}
	return nil
}

// Fingerprint is equal for two tasks that ask for the same. It covers every field but traceparent and by, defaults filled, whatever the
// order and spacing of the JSON was, and
// whether a file brings its content or names it.
func (t *Task) Fingerprint() string {
	c := *t
	c.Traceparent, c.By = "", "" // say who asked, not for what
	c.SetDefaults()
	c.Files = named(c.Files)
	if c.Limits != nil && *c.Limits == (Limits{}) {
		c.Limits = nil
	}
	c.Context, c.OutputSchema = strict.Canonical(c.Context), strict.Canonical(c.OutputSchema)
	if c.Plan != nil {
		p := *c.Plan
		p.Steps = slices.Clone(p.Steps)
		for i := range p.Steps {
			p.Steps[i].Args = strict.Canonical(p.Steps[i].Args)
		}
		c.Plan = &p
	}
	if c.Deadline != nil {
		c.Deadline = new(c.Deadline.UTC()) // the same moment
	}
	if c.NotBefore != nil {
		c.NotBefore = new(c.NotBefore.UTC())
	}
	b, _ := json.Marshal(c) // a decoded Task always encodes
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Wake is the body of a message on tasks.wake.<tenant>.<run>: a wake-up ticket (Errand empty, After the sequence of
// the record that caused it), or an errand.
type Wake struct {
	After  uint64 `json:"after,omitempty"`
	Errand Errand `json:"errand,omitempty"`

	Rating *Rating `json:"rating,omitempty"` // of ErrandLearn
}

// Rating is what a person thinks of a run whose agent learns, or of a step of it.
type Rating struct {
	At    time.Time `json:"at"`              // the newest about the whole run counts
	Score float64   `json:"score,omitempty"` // above 0: good; below 0: bad
	Step  string    `json:"step,omitempty"`  // the id of the plan's step, or the number of a step; empty: the whole run
	Note  string    `json:"note,omitempty"`
}

// Errand is work that never owns a run.
type Errand string

// Errands.
const (
	ErrandTimer Errand = "timer" // a park's time is over; After is the parked entry
	ErrandNet   Errand = "net"   // a control record may have lost its wake-up
	ErrandSweep Errand = "sweep" // look at every run; the run in the subject does not count
	ErrandLearn Errand = "learn" // a person has rated the run, and its agent learns
	ErrandLanes Errand = "lanes" // look for tasks that have no lane; the run in the subject does not count
)

// WakeSubject is where wake-ups and errands of the run are published.
func (r Ref) WakeSubject() string { return r.TaskSubject(PriorityWake) }

// TimerSubject carries the schedule of a park's timer.
func (r Ref) TimerSubject(park uint64) string {
	return fmt.Sprintf("sched.timer.%s.%s.%d.0", r.Tenant, r.Run, park)
}

// NetSubject carries the schedule that catches a control record, by its id, whose wake-up was lost.
func (r Ref) NetSubject(id string) string {
	return fmt.Sprintf("sched.net.%s.%s.%s", r.Tenant, r.Run, id)
}

// Dead is the body of a message on dead.<tenant>.<agent>.<run>: a task that cannot be worked.
type Dead struct {
	Error    RunError  `json:"error"`
	Subject  string    `json:"subject"`
	Task     []byte    `json:"task"` // the original body, as it came
	Attempts int       `json:"attempts,omitempty"`
	Time     time.Time `json:"time"`

	// Ticket is the sequence in TASKS of a message with a letter of its own, which its subject tells; 0: the run's letter.
	Ticket uint64 `json:"-"`
}

// Encode writes the task as JSON.
func (t *Task) Encode() []byte {
	b, _ := json.Marshal(t) // strings, numbers and valid raw JSON always encode
	return b
}

// Origin names the run that another one was forked from.
type Origin struct {
	Run  string `json:"run"`  // of the same tenant
	Seq  uint64 `json:"seq"`  // of the last entry of which something was kept
	Step int    `json:"step"` // the first step that is made anew
}

// MaxPermits is the largest cap on concurrent runs.
const MaxPermits = 10_000

// Concurrency limits how many tasks with the same key work at once.
type Concurrency struct {
	Key   string `json:"key" pattern:"^[A-Za-z0-9_-]{1,64}$"`         // of the tenant
	Limit int    `json:"limit,omitempty" minimum:"1" maximum:"10000"` // how many may work at once; default 1. The newest task's limit applies to the key
}

func (c *Concurrency) check() error {
	if err := strict.CheckToken("concurrency.key", c.Key); err != nil {
		return err
	}
	if c.Limit < 0 || c.Limit > MaxPermits {
		return &FieldError{Field: "concurrency.limit", Reason: fmt.Sprintf("must be 1 to %d", MaxPermits)}
	}
	return nil
}
