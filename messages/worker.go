package messages

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Subjects on which workers answer. Each worker answers the first, and the second with its own id.
const (
	StatusOfWorkers = "workers.status"
	DrainPrefix     = "workers.drain."
	KeepPrefix      = "workers.keep." // and the id: whether it works a run. From workers alone
	SeenPrefix      = "workers.seen." // each worker announces itself here, with its id
)

// WorkerStatus is what a worker says of itself.
type WorkerStatus struct {
	Name     string    `json:"name"`
	ID       string    `json:"id"` // of this life of the worker; no two have the same
	Host     string    `json:"host,omitempty"`
	Version  string    `json:"version,omitempty"`
	Slots    int       `json:"slots"` // runs worked at once
	Busy     int       `json:"busy"`  // slots in use
	Held     int       `json:"held"`  // task messages in hand
	Since    time.Time `json:"since"`
	Draining bool      `json:"draining,omitempty"` // it takes nothing new, and ends when its runs have handed themselves back
	Tools    []string  `json:"tools,omitempty"`    // names of the tools that it offers
	Labels   Labels    `json:"labels,omitempty"`   // what its operator says of it, such as gpu=true
	// Every is how often it announces itself. One that is silent for longer than twice that, and said no goodbye, is lost.
	Every Duration `json:"every,omitzero"`
	Gone  bool     `json:"gone,omitempty"` // its goodbye
	// Trials is how many of its runs are in quarantine: they lost workers before and have made no progress since.
	Trials int `json:"trials,omitempty"`
	// Explained is how many lost workers are explained by runs that this worker lately found to be poison.
	Explained int `json:"explained,omitempty"`
	// Begun is the number of tasks of each tenant in progress. They stay in the queue's stream until they are done, but are not
	// waiting.
	Begun map[string]int `json:"begun,omitempty"`
	// Memory is what its runs hold; absent: that is not counted.
	Memory *WorkerMemory `json:"memory,omitempty"`
	// Models is how calls of models went here; in answers to requests alone, as is what follows.
	Models []ModelState `json:"models,omitempty"`
	// Specs are the tools in full, for a request with HeaderDetails. Schemas are left out where they are too large together.
	Specs []ToolSpec `json:"specs,omitempty"`
}

// WorkerMemory is what the runs of a worker hold in memory, as far as it is counted.
type WorkerMemory struct {
	Limit   int64    `json:"limit"`             // bytes that they may hold together
	Used    int64    `json:"used"`              // bytes that they hold
	Waiting int      `json:"waiting,omitempty"` // runs that wait until others hold less
	Runs    []string `json:"runs,omitempty"`    // those that wait, as TENANT/RUN, the first of many; in answers to requests alone
}

// Waits reports whether a run is known to wait for memory of the worker.
func (w *WorkerStatus) Waits(run Ref) bool {
	return w.Memory != nil && slices.Contains(w.Memory.Runs, run.String())
}

// HeaderDetails with any value asks a worker for its tools in full as well.
const HeaderDetails = "Longshore-Details"

// ModelState is what a worker knows of a model of a provider, from its own calls.
type ModelState struct {
	Provider string     `json:"provider"`           // as agents name it
	Model    string     `json:"model,omitempty"`    // absent: the one that the provider chooses
	Circuit  string     `json:"circuit"`            // closed: it is called; open: it is not, until that time; half_open: a call tries whether it answers again
	Failures int        `json:"failures,omitempty"` // in a row
	Until    *time.Time `json:"until,omitempty"`
	Last     Code       `json:"last,omitempty"` // of the last failure in that row
	Answered uint64     `json:"answered"`       // calls since the worker began
	Failed   uint64     `json:"failed"`
	P50      int64      `json:"p50Ms,omitempty"` // of the last 100 calls that were answered
	P95      int64      `json:"p95Ms,omitempty"`
	// What its operator limits the provider to; 0: to nothing.
	RequestsPerMinute int `json:"requestsPerMinute,omitempty"`
	TokensPerMinute   int `json:"tokensPerMinute,omitempty"`
	InFlight          int `json:"inFlight,omitempty"` // calls at once
}

// Bounds of what a worker says of itself.
const (
	MaxWorkerTools  = 1024
	MaxWorkerLabels = 64
	MaxWorkerModels = 1024
	MaxWorkerRuns   = 256
	maxWorkerName   = 1 << 10
)

// Labels are what an operator says of a worker, by key.
type Labels map[string]string

// ParseLabels reads labels as an operator writes them: "gpu=true,zone=a".
func ParseLabels(text string) (Labels, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	out := Labels{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q is not KEY=VALUE", strict.Shown(part))
		}
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("%q is there twice", strict.Shown(key))
		}
		out[key] = value
	}
	if err := out.Check("label"); err != nil {
		return nil, err
	}
	return out, nil
}

// String is what ParseLabels reads, by key.
func (l Labels) String() string {
	parts := make([]string, 0, len(l))
	for _, k := range slices.Sorted(maps.Keys(l)) {
		parts = append(parts, k+"="+l[k])
	}
	return strings.Join(parts, ",")
}

// Check returns a *FieldError that names the key.
func (l Labels) Check(field string) error {
	if len(l) > MaxWorkerLabels {
		return &FieldError{Field: field, Reason: fmt.Sprintf("has more than %d labels", MaxWorkerLabels)}
	}
	for k, v := range l {
		if err := strict.CheckToken(field+"."+strict.Shown(k), k); err != nil {
			return err
		}
		if err := strict.CheckToken(field+"."+k, v); err != nil {
			return err
		}
	}
	return nil
}

// Check returns a *FieldError when it cannot be what a worker says of itself.
func (w *WorkerStatus) Check() error {
	switch {
	case !strict.ValidToken(w.ID):
		return &FieldError{Field: "id", Reason: "must be a token"}
	case len(w.Name) > maxWorkerName || len(w.Host) > maxWorkerName || len(w.Version) > maxWorkerName:
		return &FieldError{Field: "name", Reason: fmt.Sprintf("name, host and version must be at most %d bytes", maxWorkerName)}
	case len(w.Tools) > MaxWorkerTools:
		return &FieldError{Field: "tools", Reason: fmt.Sprintf("has more than %d", MaxWorkerTools)}
	case len(w.Models) > MaxWorkerModels || len(w.Specs) > MaxWorkerTools:
		return &FieldError{Field: "models", Reason: fmt.Sprintf("models and specs must be at most %d", MaxWorkerTools)}
	case w.Memory != nil && len(w.Memory.Runs) > MaxWorkerRuns:
		return &FieldError{Field: "memory.runs", Reason: fmt.Sprintf("has more than %d", MaxWorkerRuns)}
	case w.Every < 0 || w.Trials < 0 || w.Explained < 0:
		return &FieldError{Field: "every", Reason: "every, trials and explained must not be negative"}
	}
	for i, t := range w.Tools {
		if err := strict.CheckToken(fmt.Sprintf("tools[%d]", i), t); err != nil {
			return err
		}
	}
	return w.Labels.Check("labels")
}

// maxRequires bounds the labels that a task requires.
const maxRequires = 16

// Needs is what a run needs of the worker that works it.
type Needs struct {
	Tools  []string `json:"tools,omitempty"`  // names
	Labels Labels   `json:"labels,omitempty"` // as the worker must have them
	Pinned bool     `json:"pinned,omitempty"` // the log says already what the tools are
}

// Missing names what a worker lacks: "the tool berth_price", "the label gpu=true"; empty: it fits.
func (n *Needs) Missing(has func(tool string) bool, labels Labels) string {
	for _, t := range n.Tools {
		if !has(t) {
			return "the tool " + t
		}
	}
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		if got, ok := labels[k]; !ok || got != n.Labels[k] {
			return "the label " + k + "=" + n.Labels[k]
		}
	}
	return ""
}

// Fits reports whether a worker has what is needed, by what it says of itself.
func (w *WorkerStatus) Fits(n *Needs) bool {
	return n.Missing(func(tool string) bool { return slices.Contains(w.Tools, tool) }, w.Labels) == ""
}

// MissingFrom says what keeps a run from all of these workers: "no worker has the tool berth_price"; empty: one of them fits.
func (n *Needs) MissingFrom(workers []WorkerStatus) string {
	if slices.ContainsFunc(workers, func(w WorkerStatus) bool { return w.Fits(n) }) {
		return ""
	}
	for _, t := range n.Tools {
		if !slices.ContainsFunc(workers, func(w WorkerStatus) bool { return slices.Contains(w.Tools, t) }) {
			return "no worker has the tool " + t
		}
	}
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		if !slices.ContainsFunc(workers, func(w WorkerStatus) bool { return w.Labels[k] == n.Labels[k] }) {
			return "no worker has the label " + k + "=" + n.Labels[k]
		}
	}
	all := slices.Clone(n.Tools)
	if len(n.Labels) > 0 {
		all = append(all, n.Labels.String())
	}
	return "no worker has all of what it needs: " + strings.Join(all, ", ")
}

func checkRequires(l Labels) error {
	if len(l) > maxRequires {
		return &FieldError{Field: "requires", Reason: fmt.Sprintf("has more than %d labels", maxRequires)}
	}
	return l.Check("requires")
}
