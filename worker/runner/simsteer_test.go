package runner_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/agent"
)

// steers reports whether people talk to the run of this seed.
func (w *world) steers() bool { return w.seed%8 == 3 }

// steer is a dispatcher that tells the run something; the same number is the same message. The caller holds mu.
func (w *world) steer(n int) {
	w.spawn(nil, func(ctx context.Context, p *process) {
		_, _ = p.controller(simTime).Steer(ctx, simRun, &record.Steered{ID: fmt.Sprint("s", n), Message: fmt.Sprint("message ", n)})
	})
}

// unheard is what a run did not hear although it completed with steps left, and what it was told twice.
func (w *world) unheard(entries []record.Entry) string {
	s, ids := &agent.State{}, map[string]bool{}
	for _, e := range entries {
		for _, r := range e.Records {
			r, ok := r.(*record.Steered)
			if !ok || e.Head.Phase == record.PhaseFinished {
				continue
			}
			if ids[r.ID] {
				return "told twice: " + r.ID
			}
			ids[r.ID] = true
		}
		if err := s.Apply(e); err != nil {
			return err.Error()
		}
	}
	if w.plan == nil && len(s.Unheard) > 0 && s.Result.Success && s.Step < s.Agent.Steps(s.Task.Limits) {
		return fmt.Sprintf("completed without having heard %q", s.Unheard)
	}
	return ""
}

// The seeds do talk, and runs hear it: also those that were told while their last reply was made.
func TestSimulationSteers(t *testing.T) {
	heard, late := 0, 0
	for seed := uint64(3); seed < 400; seed += 8 {
		w, found := trial(t, seed, allRules, false)
		if found.total() != 0 {
			t.Fatal(found.first)
		}
		s := &agent.State{}
		for e := range w.log.Read(context.Background(), simRun, 0, runlog.Tail) {
			was := len(s.Unheard)
			if err := s.Apply(e); err != nil {
				t.Fatal(err)
			}
			if was > 0 && len(s.Unheard) == 0 && s.Result == nil {
				heard++
				if e.Head.Has(record.KindModelReplied) && s.Step > len(w.script)+1 {
					late++
				}
			}
		}
	}
	if heard == 0 || late == 0 {
		t.Errorf("heard %d, %d of them after the answer", heard, late)
	}
}
