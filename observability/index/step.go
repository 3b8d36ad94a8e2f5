package index

import (
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// maxTools bounds the tools of a step that are told apart.
const maxTools = 64

// stepKey names a step.
type stepKey struct {
	run messages.Ref
	id  string
}

// step is a step of a run. As a row it is the same whatever order its events were applied in: its run tells which are new.
type step struct {
	control.StepSummary

	key      stepKey
	modelAt  uint64
	endAt    uint64
	failedAt uint64
	unpriced bool
	cost     float64
	stored   bool // it has a row
}

func newStep(key stepKey) *step {
	s := &step{key: key}
	s.StepID = key.id
	if n, ok := strings.CutPrefix(key.id, "step-"); ok { // of a step of which the start is not known
		s.Step, _ = strconv.Atoi(n)
	}
	return s
}

// apply takes a new event of the run, and of this step, into account.
func (s *step) apply(e *placed) {
	n := e.Number()
	switch e.Name() {
	case messages.EventStepStart:
		if e.about.Step > 0 {
			s.Step = e.about.Step
		}
		if at := micros(e.Time); s.Started == nil || at != nil && at.Before(*s.Started) {
			s.Started = at
		}
	case messages.EventStepEnd:
		d := e.about
		if n < s.endAt {
			return
		}
		s.endAt, s.Ended, s.Status = n, micros(e.Time), messages.StepStatus(clean(string(d.Status), maxName))
		if d.Step > 0 {
			s.Step = d.Step
		}
		if n > s.failedAt && d.Reason != "" {
			s.Reason, s.failedAt = clean(d.Reason, maxText), n
		}
	case messages.EventMessageEnd:
		s.replied(n, e.said)
	case messages.EventError:
		if d := e.broken; n > s.failedAt {
			s.Code, s.Reason, s.failedAt = messages.Code(clean(string(d.Code), maxName)), clean(d.Message, maxText), n
		}
	case messages.EventToolExecutionEnd:
		s.called(e.called)
	}
}

func (s *step) replied(n uint64, d *reply) {
	s.ModelCalls++
	s.ModelMillis += d.Millis
	s.Tokens += d.Usage.Total
	if n > s.modelAt {
		s.Model, s.modelAt = modelName(d), n
	}
	switch {
	case d.Cost != nil:
		s.cost += *d.Cost
	case !d.Cached:
		s.unpriced = true
	}
}

func (s *step) called(d *call) {
	name := clean(d.ToolName, maxName)
	use, known := s.Tools[name]
	if !known && len(s.Tools) == maxTools {
		return
	}
	if s.Tools == nil {
		s.Tools = map[string]control.ToolUse{}
	}
	use.Tool, use.Runs = name, 1
	use.Calls++
	use.Millis += d.Millis
	if d.IsError {
		use.Errors++
	}
	s.Tools[name] = use
}

// stepFold is what a step must remember beyond what it shows.
type stepFold struct {
	ModelAt  uint64 `json:"modelAt,omitempty"`
	EndAt    uint64 `json:"endAt,omitempty"`
	FailedAt uint64 `json:"failedAt,omitempty"`
}

// stamp is a time in microseconds; nil when it is not known.
func stamp(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	n := t.UnixMicro()
	return &n
}

func unstamp(n *int64) *time.Time {
	if n == nil {
		return nil
	}
	t := time.UnixMicro(*n).UTC()
	return &t
}
