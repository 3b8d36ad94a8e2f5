package messages

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// WorkerList is where runs stand that wait for a worker that fits them. Like PeopleList it has no places.
const WorkerList = "worker"

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
