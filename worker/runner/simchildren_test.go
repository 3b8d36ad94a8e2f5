package runner_test

import (
	"context"
	"encoding/json"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/delegate"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// simKin adds runs that delegate to the world of several runs: one begins, hands tasks to others, of which some delegate again.
type simKin struct {
	rules  kinAblation
	bodies map[messages.Ref][]byte // of tasks of children that are queued
}

// kinAblation switches off one thing that keeps families together; the simulation must then find a violation.
type kinAblation string

const (
	wholeKin   kinAblation = ""
	noSettle   kinAblation = "a park that is found is only acked: its children are not made"
	noTelling  kinAblation = "an end that is found is only acked: the parent is not told"
	noKinSweep kinAblation = "no sweep after a loss of power"
	noEarlier  kinAblation = "a delegation makes the parent forget the one before"
	noTomb     kinAblation = "a child that does not exist when its parent ends is left alone"
)

type simTasks struct {
	p *process
	w *sessionWorld
}

func (s simTasks) Submit(_ context.Context, t *messages.Task, _ bool) (bool, error) {
	if err := s.p.op("submit"); err != nil {
		return false, err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	run := t.Ref()
	for seq := range s.w.tasks {
		if s.w.of[seq] == run {
			return true, nil
		}
	}
	m := &message{start: true}
	s.w.put("", m)
	s.w.of[m.seq], s.w.kin.bodies[run] = run, t.Encode()
	return false, nil
}

func (s simTasks) Nudge(context.Context, messages.Ref) error { return nil }

// keep gives a controller a queue for the tasks of children.
func (f *simKin) keep(k *runlog.Controller, p *process, w *sessionWorld) {
	if f != nil {
		k.Tasks, k.Sessions = simTasks{p, w}, nil
	}
}

// lost reports whether a first entry is not stored, for an ablation. The caller holds no lock.
func (f *simKin) lost(last uint64, e *record.Entry) bool {
	return f != nil && f.rules == noTomb && last == 0 && e.Head.Has(record.KindWithdrawn)
}

// forget is what a head holds, for an ablation.
func (f *simKin) forget(e *record.Entry) {
	if f != nil && f.rules == noEarlier {
		e.Head.Earlier = nil
	}
}

// heardAll looks at the end of a parent: it was notified of each end that was settled before.
func (f *simKin) heardAll(w *sessionWorld, run messages.Ref) {
	told, children := map[string]bool{}, []messages.Ref{}
	for e := range w.log.Read(context.Background(), run, 0, runlog.Tail) {
		for _, r := range e.Records {
			switch r := r.(type) {
			case *record.Delegated:
				for i := range r.Children {
					children = append(children, messages.Ref{Tenant: run.Tenant, Run: r.Children[i].Task.ID})
				}
			case *record.ChildEnded:
				told[r.Run] = true
			}
		}
	}
	for _, child := range children {
		last, _ := w.last(child)
		if unborn := last.Head.ClaimSeq == 0; w.told[child] && !unborn && !told[child.Run] { // that of an unborn child is settled before it is told
			w.wrong("%s ended and was never notified of the end of %s, which was settled before", run.Run, child.Run)
		}
	}
}

// appended watches over families.
func (f *simKin) appended(w *sessionWorld, run messages.Ref, last uint64, e *record.Entry) {
	if f == nil {
		return
	}
	if e.Head.Has(record.KindFinished) && e.Head.Children != nil {
		w.mu.Lock()
		f.heardAll(w, run)
		w.mu.Unlock()
	}
	if e.Head.Parent == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if last == 0 {
		w.refs = append(w.refs, run)
		if e.Head.Phase != record.PhaseFinished && w.told[messages.Ref{Tenant: run.Tenant, Run: e.Head.Parent.Run}] {
			w.wrong("%s began after the end of its parent was settled", run.Run)
		}
	}
}

// work says what the agents and the model are.
func (f *simKin) work(t *testing.T, w *sessionWorld, p *process, cfg *runner.Config, ticket *runner.Ticket, start bool) {
	t.Helper()
	if f == nil {
		return
	}
	ts, err := delegate.Tools()
	if err != nil {
		t.Error(err)
	}
	if cfg.Tools, err = tools.NewSet(ts...); err != nil {
		t.Error(err)
	}
	cfg.Model = kinModel{p}
	cfg.Agent = func(_ context.Context, name string) (messages.Definition, error) {
		d := messages.Definition{
			Name: name, Tools: []string{messages.ToolDelegate}, MaxSteps: 5,
			Delegate: &messages.Delegate{Agents: []string{"mid", "leaf"}, Depth: 2, Total: 20},
		}
		d.SetDefaults()
		return d, nil
	}
	if start {
		w.mu.Lock()
		if ticket.Body = f.bodies[ticket.Run]; ticket.Body == nil {
			ticket.Body = []byte(`{"input":"root","agent":"mid"}`)
		}
		w.mu.Unlock()
	}
}

// kinModel delegates for a root and a mid, and answers or fails for a leaf.
type kinModel struct{ p *process }

func (m kinModel) Stream(_ context.Context, req model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := m.p.op("model"); err != nil {
			yield(model.Delta{}, err)
			return
		}
		role, turn, text := "", 0, "well"
		for i := range req.Messages {
			switch req.Messages[i].Role {
			case messages.RoleUser:
				role = req.Messages[i].Text()
			case messages.RoleAssistant:
				turn++
			case messages.RoleTool:
				text = req.Messages[i].Content[0].ToolResult.Shown()
			case messages.RoleSystem:
			}
		}
		if role == "bad leaf" {
			yield(model.Delta{}, &model.Error{Class: model.InvalidRequest})
			return
		}
		reply := &model.Reply{Message: messages.Message{Content: messages.TextContent(text)}, Stop: messages.StopEnd, Usage: messages.Usage{Input: 1, Total: 1}}
		if args := delegates(m.p.w.seed, role, turn); args != "" {
			reply.Stop = messages.StopToolCalls
			reply.Message.Content = []messages.Block{{ToolCall: &messages.ToolCall{ID: "c" + strconv.Itoa(turn), Name: messages.ToolDelegate, Arguments: args}}}
		}
		yield(model.Delta{Reply: reply}, nil)
	}
}

// delegates are the arguments of a role's delegation in a turn of a seed. A root delegates twice.
func delegates(seed uint64, role string, turn int) string {
	type task struct {
		Agent string `json:"agent"`
		Input string `json:"input"`
	}
	var args struct {
		Tasks     []task `json:"tasks"`
		Wait      string `json:"wait,omitempty"`
		Quorum    int    `json:"quorum,omitempty"`
		OnFailure string `json:"onFailure,omitempty"`
	}
	switch {
	case role == "root" && turn == 1:
		args.Tasks = []task{{"leaf", "leaf"}, {"leaf", "leaf"}}
	case turn > 0:
		return ""
	case role == "root":
		args.Tasks = []task{{"leaf", "leaf"}, {"mid", "mid"}, {"leaf", []string{"leaf", "bad leaf"}[seed%2]}}
	case role == "mid":
		args.Tasks = []task{{"leaf", "leaf"}, {"leaf", "leaf"}}
	default:
		return ""
	}
	switch (seed/2 + uint64(turn)) % 4 {
	case 1:
		args.Wait = messages.WaitFirst
	case 2:
		args.Wait, args.Quorum = messages.WaitQuorum, 2
	case 3:
		args.OnFailure = messages.OnChildFail
	}
	b, _ := json.Marshal(args)
	return string(b)
}

// judge looks at the families after everything has come to rest.
func (f *simKin) judge(w *sessionWorld) {
	if f == nil {
		return
	}
	known := map[messages.Ref]bool{}
	for _, r := range w.refs {
		known[r] = true
	}
	for _, run := range w.refs {
		calls, told, ended, newest := map[string]bool{}, map[[2]int]messages.Status{}, false, 0
		for e := range w.log.Read(context.Background(), run, 0, runlog.Tail) {
			for _, r := range e.Records {
				switch r := r.(type) {
				case *record.Delegated:
					if calls[r.Call] {
						w.wrong("%s delegated twice for a call", run.Run)
					}
					calls[r.Call], newest = true, r.Number
					for i := range r.Children {
						if child := (messages.Ref{Tenant: run.Tenant, Run: r.Children[i].Task.ID}); !known[child] {
							w.wrong("the child %s was never made", child.Run)
						}
					}
				case *record.ChildEnded:
					if told[[2]int{r.Number, r.Index}] != "" {
						w.wrong("%s was notified of child %d twice", run.Run, r.Index)
					}
					told[[2]int{r.Number, r.Index}] = r.Status
					if last, _ := w.last(messages.Ref{Tenant: run.Tenant, Run: r.Run}); last.Head.Status != r.Status {
						w.wrong("%s was told that child %d is %s, and it is %s", run.Run, r.Index, r.Status, last.Head.Status)
					}
				case *record.Finished:
					ended = true
				case *record.ToolReturned:
					f.answered(w, run, r, newest, told)
				}
			}
		}
		if !ended {
			w.wrong("%s has not ended", run.Run)
		}
	}
}

// answered compares what the model was told about its children with their ends.
func (f *simKin) answered(w *sessionWorld, run messages.Ref, r *record.ToolReturned, newest int, told map[[2]int]messages.Status) {
	var got []messages.ChildResult
	if err := json.Unmarshal([]byte(r.Result.Shown()), &got); err != nil {
		w.wrong("%s was told %q", run.Run, r.Result.Shown())
		return
	}
	for i := range got {
		if s := told[[2]int{newest, i}]; s != "" && s != got[i].Status || s == "" && got[i].Status != messages.StatusCancelled {
			w.wrong("%s was told %q, but of child %d it knew %q", run.Run, r.Result.Shown(), i, told[[2]int{newest, i}])
		}
	}
}

func kinTrial(t *testing.T, seed uint64, rules kinAblation) *sessionWorld {
	t.Helper()
	log := &runlog.Memory{}
	w := &sessionWorld{
		world: &world{
			seed: seed, rnd: rand.New(rand.NewPCG(seed, 11)), log: log, tasks: map[uint64]*message{}, timers: map[string]*message{},
			claims: map[string]*process{},
		},
		noGrant: rules == noTelling, sessions: &runlog.SessionsInMemory{Log: log}, of: map[uint64]messages.Ref{}, told: map[messages.Ref]bool{},
		sums: map[string]int{}, kin: &simKin{rules: rules, bodies: map[messages.Ref][]byte{}},
	}
	m := &message{start: true}
	w.put("", m)
	w.of[m.seq] = messages.Ref{Tenant: "t", Run: "root"}
	w.refs = append(w.refs, w.of[m.seq])
	synctest.Test(t, func(t *testing.T) { w.play(t) })
	w.judge()
	return w
}

func TestSimulationOfChildren(t *testing.T) {
	n := seeds(t) / 8
	var mu sync.Mutex
	bad, first, runs := 0, "", 0
	t.Run("seeds", func(t *testing.T) {
		const chunks = 4
		for c := range uint64(chunks) {
			t.Run(strconv.FormatUint(c, 10), func(t *testing.T) {
				t.Parallel()
				for seed := c; seed < n; seed += chunks {
					w := kinTrial(t, seed, wholeKin)
					mu.Lock()
					runs += len(w.refs)
					if w.bad != "" {
						bad++
						first = w.bad
					}
					mu.Unlock()
				}
			})
		}
	})
	if bad > 0 {
		t.Errorf("%d of %d seeds; one: %s", bad, n, first)
	}
	if runs < int(n)*2 {
		t.Errorf("%d runs in %d seeds: little was delegated", runs, n)
	}
}

func TestSimulationOfChildrenFailsWithout(t *testing.T) {
	for _, rules := range []kinAblation{noSettle, noTelling, noKinSweep, noEarlier, noTomb} {
		t.Run(strings.ReplaceAll(string(rules), ":", ""), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(400) {
				if w := kinTrial(t, seed, rules); w.bad != "" {
					t.Log(w.bad)
					return
				}
			}
			t.Error("nothing was violated: the simulation does not see it")
		})
	}
}
