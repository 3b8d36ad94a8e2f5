package runner_test

import (
	"context"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/runner"
)

// A quarter of the seeds have an agent that begins with memories, and learns if it has a plan. A process may die while memory is searched, and now and then the search
// fails.
func (w *world) recalls() bool { return w.seed%4 == 1 }

func (w *world) remembers(d *messages.Definition) {
	if w.recalls() {
		d.Memory = &messages.MemoryPolicy{Recall: &messages.RecallPolicy{}}
		if w.plan != nil {
			d.Memory.Learn = &messages.LearnPolicy{}
		}
	}
}

func (p *process) memory(cfg *runner.Config) {
	if p.w.recalls() {
		cfg.Memory = simMemory{p: p}
	}
}

type simMemory struct {
	longterm.Store

	p *process
}

// Search implements longterm.Reader. A search may cost money: it counts as a call.
func (m simMemory) Search(context.Context, longterm.Place, longterm.Search) (longterm.Found, error) {
	m.p.w.called(m.p, func(r record.Record) bool { return r.Kind() == record.KindMemoryRecalled })
	if err := m.p.op("memory"); err != nil {
		return longterm.Found{}, err
	}
	if m.p.w.seed%5 == 3 {
		return longterm.Found{}, longterm.ErrUnavailable
	}
	return longterm.Found{Hits: []longterm.Hit{{Item: longterm.Item{ID: "m", Text: "go"}, Score: 1}}}, nil
}

// Write implements longterm.Writer.
func (m simMemory) Write(context.Context, longterm.Place, []longterm.Item) error {
	m.p.w.called(m.p, func(r record.Record) bool {
		w, ok := r.(*record.MemoryWritten)
		return ok && w.Learned
	})
	if err := m.p.op("memory"); err != nil {
		return err
	}
	if m.p.w.seed%5 == 3 {
		return longterm.ErrStorageFull
	}
	return nil
}

// Memory is searched before the first step, and what came of it is recorded once, whatever happens.
func TestSimulationRecalls(t *testing.T) {
	found, failed, learned := 0, 0, 0
	for n := range uint64(240) {
		seed := n / 2
		if n%2 == 1 {
			seed += planSeeds
		}
		w, bad := trial(t, seed, allRules, false)
		if bad.total() != 0 {
			t.Fatal(bad.first)
		}
		recalled, examples, began := 0, 0, false
		for e := range w.log.Read(context.Background(), simRun, 0, runlog.Tail) {
			for _, r := range e.Records {
				switch r := r.(type) {
				case *record.StepStarted:
					began = true
				case *record.MemoryWritten:
					if examples++; examples > 1 {
						t.Errorf("seed %d: it became %d examples", seed, examples)
					}
					learned++
				case *record.MemoryRecalled:
					if recalled++; recalled > 1 || began {
						t.Errorf("seed %d: recalled %d times, a step had begun: %v", seed, recalled, began)
					}
					if r.Error != "" {
						failed++
					} else {
						found++
					}
				}
			}
		}
		if began && w.recalls() && w.plan == nil && recalled == 0 {
			t.Errorf("seed %d: a step began without memories", seed)
		}
	}
	if found == 0 || failed == 0 || learned == 0 {
		t.Errorf("%d searches found something, %d failed, %d runs became examples", found, failed, learned)
	}
}

// Each collection is searched by the owner alone: this run is paused while it searches the first of two, and is taken on meanwhile.
func TestSimulationPausesBetweenCollections(t *testing.T) {
	const seed = 1062305
	if _, found := trial(t, seed, allRules, false); found.total() != 0 {
		t.Error(found.first)
	}
}
