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
}

// Bounds of what a worker says of itself.
const (
	MaxWorkerTools  = 1024
	MaxWorkerLabels = 64
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
