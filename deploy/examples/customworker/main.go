// Command customworker is a worker of a fleet with a tool, a model, a planner, a model selector and a memory of its own, to
// copy and to change.
// Its dispatcher is any `longshore dispatcher` or `longshore dev --no-worker` on the same NATS_URL.
package main

import (
	"context"
	"iter"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/planner"
)

// parrot is the model: it calls the tool once and repeats what the tool said.
type parrot struct{}

func (parrot) Stream(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	call := []messages.Block{{ToolCall: &messages.ToolCall{ID: "1", Name: "shout", Arguments: `{"Text":"ahoy"}`}}}
	reply := model.Reply{Provider: "parrot", Stop: messages.StopToolCalls, Message: messages.Message{Content: call}}
	if last := r.Messages[len(r.Messages)-1]; last.Role == messages.RoleTool {
		reply.Stop, reply.Message.Content = messages.StopEnd, last.Content[0].ToolResult.Content
	}
	return func(yield func(model.Delta, error) bool) { yield(model.Delta{Reply: &reply}, nil) }
}

// rota is the planner: it decides by rules what a model would be asked. An agent names it by `model: rota`.
func rota(_ context.Context, s planner.State) (planner.Step, error) {
	if results := s.Results(); len(results) > 0 {
		return planner.Step{Text: "The rota says: " + results[0].Content[0].Text}, nil
	}
	return planner.Step{Calls: []messages.ToolCall{{Name: "shout", Arguments: `{"Text":"all hands"}`}}}, nil
}

// thrifty is the selector: of the models of an agent it wants the planner first, which costs nothing.
type thrifty struct{}

func (thrifty) Select(_ context.Context, _ model.Request, from []model.Candidate) []model.Candidate {
	slices.SortStableFunc(from, func(a, b model.Candidate) int {
		return strings.Compare(strings.TrimPrefix(a.Endpoint, "rota"), strings.TrimPrefix(b.Endpoint, "rota"))
	})
	return from
}

// shout is the tool.
func shout(_ context.Context, _ tools.Call, in struct{ Text string }) (tools.Result, error) {
	return tools.Text(strings.ToUpper(in.Text) + "!"), nil
}

// notes is the memory: the latest state of runs. A run whose state is lost is folded from its log.
type notes struct{ sync.Map }

type note struct {
	seq  uint64
	id   string
	data []byte
}

func (n *notes) Wants() bool { return true }
func (n *notes) Save(run messages.Ref, seq uint64, id string, data []byte) {
	n.Store(run, note{seq, id, data})
}

func (n *notes) Load(_ context.Context, run messages.Ref) (uint64, string, []byte, bool) {
	v, _ := n.Map.Load(run)
	s, ok := v.(note)
	return s.seq, s.id, s.data, ok
}

func work(ctx context.Context, environ []string) error {
	var s settings.Worker
	if err := settings.Read(&s, append(environ, "REDIS_URL=none", "LONGSHORE_WORKER=custom")); err != nil {
		return err
	}
	tool, err := tools.Func(messages.ToolSpec{Name: "shout", Description: "Says it louder.", Effect: messages.EffectRead}, shout)
	if err != nil {
		return err
	}
	planned, err := planner.New(planner.Config{Name: "rota", Planner: planner.Func(rota), Log: slog.Default()})
	if err != nil {
		return err
	}
	return fleet.Worker(ctx, s, "1.0", slog.Default(), fleet.Parts{
		Endpoints: []model.Endpoint{{Name: "parrot", Provider: parrot{}}, {Name: "rota", Provider: planned}},
		Selector:  thrifty{}, Tools: []tools.Tool{tool}, Cache: &notes{},
	}, nil)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := work(ctx, os.Environ()); err != nil {
		log.Fatal(err)
	}
}
