package runner_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/runner"
)

// parallel is a run without a seed: calls may run together.
type parallel struct{ state *agent.State }

func (p *parallel) play(t *testing.T, dir string, cfg runner.Config, def messages.Definition, ts ...tools.Tool) {
	t.Helper()
	set, err := tools.NewSet(ts...)
	if err != nil {
		t.Fatal(err)
	}
	def.Name = "a"
	for _, tool := range ts {
		def.Tools = append(def.Tools, tool.Spec().Name)
	}
	def.SetDefaults()
	n, log := 0, &runlog.Memory{}
	cfg.Worker, cfg.Tools = "w", set
	cfg.Workspace = func(messages.Ref) (*sandbox.Workspace, error) { return sandbox.Open(dir, sandbox.Limits{}) }
	cfg.Agent = func(context.Context, string) (messages.Definition, error) { return def, nil }
	cfg.Controller = &runlog.Controller{Log: log, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string { n++; return fmt.Sprint("id", n) }}
	if out, err := runner.New(cfg).Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
		t.Fatalf("%v, %v", out, err)
	}
	p.state = &agent.State{}
	for e, err := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
		if err == nil {
			err = p.state.Apply(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
