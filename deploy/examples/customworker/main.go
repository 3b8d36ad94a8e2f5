// Command customworker is a worker of a fleet with a tool, a model and a memory of its own, to copy and to change.
// Its dispatcher is any `longshore dispatcher` or `longshore dev --no-worker` on the same NATS_URL.
package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// parrot is the model: it calls the tool once and repeats what the tool said.
type parrot struct{}

func (parrot) Stream(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	reply := model.Reply{Provider: "parrot", Stop: messages.StopToolCalls, Message: messages.Message{Content: []messages.Block{
		{ToolCall: &messages.ToolCall{ID: "1", Name: "shout", Arguments: `{"text":"ahoy"}`}},
	}}}
	if last := r.Messages[len(r.Messages)-1]; last.Role == messages.RoleTool {
		reply.Stop, reply.Message.Content = messages.StopEnd, last.Content[0].ToolResult.Content
	}
	return func(yield func(model.Delta, error) bool) { yield(model.Delta{Reply: &reply}, nil) }
}

// words are the arguments of the tool.
type words struct {
	Text string `json:"text"`
}

// shout is the tool.
func shout(_ context.Context, _ tools.Call, in words) (tools.Result, error) {
	return tools.Text(strings.ToUpper(in.Text) + "!"), nil
}

// notes is the memory: it holds the latest state of runs, and a run whose state is lost is folded from its log.
type notes struct{ states sync.Map }

type note struct {
	seq  uint64
	id   string
	data []byte
}

func (n *notes) Wants() bool { return true }
func (n *notes) Save(run messages.Ref, seq uint64, id string, data []byte) {
	n.states.Store(run, note{seq, id, data})
}

func (n *notes) Load(_ context.Context, run messages.Ref) (seq uint64, id string, data []byte, ok bool) {
	v, _ := n.states.Load(run)
	s, ok := v.(note)
	return s.seq, s.id, s.data, ok
}

// work works tasks until ctx ends and what is in hand has been handed back.
func work(ctx context.Context, nc *nats.Conn) error {
	b, err := bus.Open(ctx, nc, bus.Config{})
	if err != nil {
		return err
	}
	tool, err := tools.Func(messages.ToolSpec{Name: "shout", Description: "Says it louder.", Effect: messages.EffectRead}, shout)
	if err != nil {
		return err
	}
	set, err := tools.NewSet(tool)
	if err != nil {
		return err
	}
	keeper := &runlog.Keeper{
		Log: b, Queue: b, Events: b, Now: func() time.Time { return time.Now().UTC() },
		NewID: func() string { return messages.NewID(time.Now()) },
	}
	run := runner.New(runner.Config{
		Worker: "custom", Keeper: keeper, Model: parrot{}, Tools: set, Cache: &notes{}, Agent: b.Agent,
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return nil, nil }, //nolint:nilnil // a run without files
	})
	return worker.New(worker.Config{Bus: b, Keeper: keeper, Runner: run}).Run(ctx)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	nc, err := nats.Connect(os.Getenv("NATS_URL"))
	if err == nil {
		defer nc.Close()
		err = work(ctx, nc)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "customworker:", err)
	}
}
