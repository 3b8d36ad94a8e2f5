package runner_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// deltas is a model whose pieces come a second apart.
type deltas struct {
	pieces []model.Delta
	now    *time.Time
}

func (d deltas) Stream(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for _, p := range d.pieces {
			*d.now = d.now.Add(time.Second)
			if !yield(p, nil) {
				return
			}
		}
	}
}

func TestFirstToken(t *testing.T) {
	end := model.Delta{Reply: say("ok")}
	for name, tc := range map[string]struct {
		pieces []model.Delta
		want   int64
	}{
		"text":             {[]model.Delta{{Text: "o"}, {Text: "k"}, end}, 1000},
		"reasoning":        {[]model.Delta{{Reasoning: "hm"}, {Text: "ok"}, end}, 1000},
		"nothing before":   {[]model.Delta{end}, 0},
		"it began anew":    {[]model.Delta{{Text: "bad"}, {Reset: true}, {Text: "ok"}, end}, 3000},
		"anew, at once":    {[]model.Delta{{Text: "bad"}, {Reset: true}, end}, 0},
		"an empty delta":   {[]model.Delta{{}, {Text: "ok"}, end}, 2000},
		"a reset at first": {[]model.Delta{{Reset: true}, {Text: "ok"}, end}, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
			log := &runlog.Memory{}
			_, k := rnew(log, &rq{}, &re{}, nil)
			k.Now = func() time.Time { return now }
			set, err := tools.NewSet()
			if err != nil {
				t.Fatal(err)
			}
			r := runner.New(runner.Config{Worker: "w", Controller: k, Model: deltas{tc.pieces, &now}, Tools: set, Agent: anyAgent})
			if out, err := r.Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
				t.Fatalf("%v %v", out, err)
			}
			for e, err := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
				if err != nil {
					t.Fatal(err)
				}
				for _, rec := range e.Records {
					if m, ok := rec.(*record.ModelReplied); ok && (m.FirstTokenMillis != tc.want || m.Millis != int64(1000*len(tc.pieces))) {
						t.Errorf("first token after %d ms of %d, want %d", m.FirstTokenMillis, m.Millis, tc.want)
					}
				}
			}
		})
	}
}

func anyAgent(context.Context, string) (messages.Definition, error) {
	d := messages.Definition{Name: "a"}
	d.SetDefaults()
	return d, nil
}

// A run whose owner handed it back is no loss of a worker.
func TestReclaimsAndRepeatedCalls(t *testing.T) {
	for name, tc := range map[string]struct {
		left               []record.Record
		reclaims, repeated uint64
	}{
		"in a model call":        {[]record.Record{&record.StepStarted{Step: 1}}, 1, 1},
		"before the first call":  {nil, 1, 0},
		"handed back in a step":  {[]record.Record{&record.StepStarted{Step: 1}, &record.Released{Reason: "stop"}}, 0, 0},
		"handed back before one": {[]record.Record{&record.Released{Reason: "stop"}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, k := rnew(&runlog.Memory{}, &rq{}, &re{}, func(context.Context, model.Request) (*model.Reply, error) { return say("ok"), nil })
			start := &record.Started{Task: messages.Task{ID: "r", Tenant: "t", Agent: "a", Priority: "normal", Input: messages.TextInput("hello")}}
			start.Agent.SetDefaults()
			records := append([]record.Record{start, &record.Claimed{Claim: "other", Worker: "w0", Ticket: 7}}, tc.left...)
			if _, err := k.Begin(t.Context(), rrun, records...); err != nil {
				t.Fatal(err)
			}
			if out, err := r.Run(t.Context(), rticket(2)); out != runner.Done || err != nil {
				t.Fatalf("%v %v", out, err)
			}
			if s := r.Stats(); s.Reclaims != tc.reclaims || s.RepeatedModelCalls != tc.repeated || s.RepeatedToolCalls != 0 || s.Claims != 1 {
				t.Errorf("%+v, want %d reclaims and %d repeated calls", s, tc.reclaims, tc.repeated)
			}
		})
	}
}
