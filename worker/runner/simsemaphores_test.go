package runner_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// simCapped adds caps, concurrency keys and pauses to the world of several runs. Each process knows the caps of when it
// began and no newer ones.
type simCapped struct {
	lines *runlog.SemaphoresInMemory
	stale bool                // ablation: what is read of a line may be old
	caps  map[string]int      // of lines; absent: none
	owed  map[string]int      // semaphores that a worker must look at, by the change that requires it
	looks map[string]*process // who does
	at    map[*process]map[string]int

	changes, pauses, sets int
	ops                   *rand.Rand
	keyed                 bool

	shelf *simWorkspace // in place of caps alone: all runs name a workspace; nil: none does
}

const (
	simTenantCap = 2
	simRuns      = 6
)

type simSemaphores struct {
	p *process
	c *simCapped
}

func (l simSemaphores) Semaphore(ctx context.Context, line string) (queue.Semaphore, uint64, error) {
	if err := l.p.op("line"); err != nil {
		return queue.Semaphore{}, 0, err
	}
	return l.c.lines.Semaphore(ctx, line)
}

func (l simSemaphores) PutSemaphore(ctx context.Context, line string, revision uint64, v queue.Semaphore) error {
	if err := l.p.op("put line"); err != nil {
		return err
	}
	return l.c.lines.PutSemaphore(ctx, line, revision, v)
}

func (l simSemaphores) Wait(ctx context.Context, line string, run messages.Ref) error {
	if err := l.p.op("wait"); err != nil {
		return err
	}
	return l.c.lines.Wait(ctx, line, run)
}

func (l simSemaphores) Waiting(ctx context.Context, line string, run messages.Ref) (uint64, error) {
	if err := l.p.op("waiting"); err != nil {
		return 0, err
	}
	return l.c.lines.Waiting(ctx, line, run)
}

func (l simSemaphores) First(ctx context.Context, line string) (messages.Ref, uint64, error) {
	if err := l.p.op("first"); err != nil {
		return messages.Ref{}, 0, err
	}
	run, at, err := l.c.lines.First(ctx, line)
	l.p.w.mu.Lock()
	defer l.p.w.mu.Unlock()
	if l.c.stale && l.c.ops.IntN(2) == 0 {
		return messages.Ref{}, 0, nil // another run joined only now
	}
	return run, at, err
}

func (l simSemaphores) Unwait(ctx context.Context, line string, run messages.Ref, at uint64) error {
	if err := l.p.op("unwait"); err != nil {
		return err
	}
	return l.c.lines.Unwait(ctx, line, run, at)
}

func (l simSemaphores) Semaphores(ctx context.Context) iter.Seq2[string, error] {
	return l.c.lines.Semaphores(ctx)
}

type capsThen map[string]int

func (c capsThen) Cap(line string) int {
	if n, ok := c[line]; ok {
		return n
	}
	return runlog.NoCap
}

// keep gives a controller the lines and the caps of when its process began.
func (c *simCapped) keep(k *runlog.Controller, p *process, of *sessionWorld) {
	if c == nil {
		return
	}
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.at[p] == nil {
		c.at[p] = maps.Clone(c.caps)
	}
	k.Sessions = nil
	k.Semaphores, k.Caps = simSemaphores{p, c}, capsThen(c.at[p])
	c.shelf.keep(k, p, of)
}

type lineTool struct{ p *process }

func (lineTool) Spec() messages.ToolSpec {
	return messages.ToolSpec{Name: "ask", Description: "Asks.", Effect: messages.EffectRead, InputSchema: []byte(`{"type":"object"}`)}
}

func (t lineTool) Call(context.Context, tools.Call) (tools.Result, error) {
	if err := t.p.op("tool"); err != nil {
		return tools.Result{}, err
	}
	return tools.Result{Park: &tools.Park{Reason: "answer"}}, nil
}

type lineModel struct{ p *process }

// Stream asks for the tool first, in every second run.
func (m lineModel) Stream(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := m.p.op("model"); err != nil {
			yield(model.Delta{}, err)
			return
		}
		reply := &model.Reply{Message: messages.Message{Content: messages.TextContent("well")}, Stop: messages.StopEnd}
		if asked := r.Messages[len(r.Messages)-1]; asked.Role == messages.RoleUser && asked.Text() == "ask" {
			call := messages.ToolCall{ID: "c", Name: "ask", Arguments: "{}"}
			reply.Message.Content, reply.Stop = []messages.Block{{ToolCall: &call}}, messages.StopToolCalls
		}
		yield(model.Delta{Reply: reply}, nil)
	}
}

func (c *simCapped) work(t *testing.T, p *process, cfg *runner.Config, ticket *runner.Ticket) {
	t.Helper()
	if c == nil {
		return
	}
	set, err := tools.NewSet(lineTool{p})
	if err != nil {
		t.Error(err)
	}
	cfg.Tools, cfg.Model = set, lineModel{p}
	cfg.Agent = func(context.Context, string) (messages.Definition, error) {
		d := messages.Definition{Name: "a", Tools: []string{"ask"}}
		d.SetDefaults()
		return d, nil
	}
	if c.shelf != nil {
		c.shelf.work(t, p, cfg, ticket)
		return
	}
	if ticket.After == 0 {
		n, _ := strconv.Atoi(strings.TrimPrefix(ticket.Run.Run, "r"))
		input, key := "go", ""
		if n%2 == 1 {
			input = "ask"
		}
		if n < 3 && c.keyed {
			key = `,"concurrency":{"key":"k"}`
		}
		ticket.Body = []byte(`{"agent":"a","input":"` + input + `"` + key + `}`)
	}
}

// happen lets operators change caps and pause things, and people answer. The caller holds mu.
func (c *simCapped) happen(w *sessionWorld, chaos bool) {
	if c == nil {
		return
	}
	c.shelf.happen(w, chaos)
	if chaos && c.changes > 0 && w.rnd.IntN(40) == 0 {
		c.changes--
		switch line := queue.TenantSemaphore("t"); w.rnd.IntN(3) {
		case 0:
			c.set(line, 1)
		case 1:
			c.set(line, 3)
		default:
			c.set(line, runlog.NoCap)
		}
	}
	paused := queue.PauseSemaphore(queue.QuotaRef{Kind: queue.QuotaAgent, Name: "a"})
	if _, is := c.caps[paused]; is && (!chaos || w.rnd.IntN(40) == 0) {
		c.set(paused, runlog.NoCap)
	} else if !is && chaos && c.pauses > 0 && w.rnd.IntN(40) == 0 {
		c.pauses--
		c.set(paused, 0)
	}
	for _, r := range w.refs {
		last, ok := w.last(r)
		if ok && last.Head.Phase == record.PhaseParked && last.Head.Waits == "answer" && w.rnd.IntN(30) == 0 {
			w.spawn(nil, func(ctx context.Context, p *process) {
				_, _ = w.controller(p).Control(ctx, r, &record.Answered{ID: "a", Park: last.Head.ParkSeq, Content: messages.TextContent("yes")})
			})
		}
	}
	if behind := slices.ContainsFunc(w.procs, func(p *process) bool {
		return !p.done && !p.dead && c.at[p] != nil && !maps.Equal(c.at[p], c.caps)
	}); behind { // it learns of the caps later, and looks then
		return
	}
	for _, line := range sortedKeys(c.owed) {
		if by := c.looks[line]; by != nil && !by.done && !by.dead || chaos && w.rnd.IntN(10) != 0 {
			continue
		}
		change := c.owed[line]
		w.spawn(nil, func(ctx context.Context, p *process) {
			if w.controller(p).LookAt(ctx, line) != nil {
				return // another worker will
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if c.owed[line] == change {
				delete(c.owed, line)
			}
		})
		c.looks[line] = w.procs[len(w.procs)-1]
	}
}

// set changes a cap. Each worker that learns of more permits looks at the queue.
func (c *simCapped) set(line string, n int) {
	before, had := c.caps[line]
	if n == runlog.NoCap {
		delete(c.caps, line)
	} else {
		c.caps[line] = n
	}
	if had && (n == runlog.NoCap || n > before) {
		c.sets++
		c.owed[line] = c.sets
	}
}

// rests reports whether no work is left. The caller holds mu.
func (c *simCapped) rests(w *sessionWorld) bool {
	if c == nil {
		return true
	}
	answered := func(r messages.Ref) bool {
		last, ok := w.last(r)
		return !ok || last.Head.Phase != record.PhaseParked || last.Head.Waits != "answer"
	}
	_, paused := c.caps[queue.PauseSemaphore(queue.QuotaRef{Kind: queue.QuotaAgent, Name: "a"})]
	return len(c.owed) == 0 && !paused && !slices.ContainsFunc(w.refs, func(r messages.Ref) bool { return !answered(r) })
}

// check counts the runs that work. The caller holds mu.
func (c *simCapped) check(w *sessionWorld) {
	if c == nil {
		return
	}
	working, keyed := 0, 0
	for i, r := range w.refs {
		if last, ok := w.last(r); ok && last.Head.Phase == record.PhaseActive && worksSince(w, r, last.Head.ClaimSeq) {
			working++
			if i < 3 {
				keyed++
			}
		}
	}
	if most := c.most(w); working > most {
		w.wrong("%d runs work", working)
	}
	if c.keyed && keyed > 1 {
		w.wrong("%d runs of the key work", keyed)
	}
}

// most is how many runs may work.
func (c *simCapped) most(w *sessionWorld) int {
	if w.seed%3 == 1 {
		return simRuns // the cap changes
	}
	return simTenantCap
}

// worksSince reports whether a run continued after its claim, which it may not without its permits.
func worksSince(w *sessionWorld, r messages.Ref, claim uint64) bool {
	for e := range w.log.Heads(context.Background(), r, claim, runlog.Tail) {
		for _, k := range e.Head.Kinds {
			switch k { //nolint:exhaustive // what an owner does
			case record.KindStepStarted, record.KindModelReplied, record.KindToolStarted, record.KindToolReturned, record.KindStepEnded:
				return true
			}
		}
	}
	return false
}

func lineTrial(t *testing.T, seed uint64, noSettle, stale bool) *sessionWorld {
	t.Helper()
	w := &sessionWorld{
		world: &world{
			seed: seed, rnd: rand.New(rand.NewPCG(seed, 4)), log: &runlog.Memory{}, tasks: map[uint64]*message{}, timers: map[string]*message{},
			claims: map[string]*process{},
		},
		noGrant: noSettle, sessions: &runlog.SessionsInMemory{}, of: map[uint64]messages.Ref{}, told: map[messages.Ref]bool{}, sums: map[string]int{},
	}
	c := &simCapped{
		lines: &runlog.SemaphoresInMemory{}, stale: stale, caps: map[string]int{queue.TenantSemaphore("t"): simTenantCap}, owed: map[string]int{}, looks: map[string]*process{},
		at: map[*process]map[string]int{}, ops: rand.New(rand.NewPCG(seed, 5)), keyed: seed%2 == 0,
	}
	if seed%3 == 1 {
		c.changes = 3
	}
	if seed%3 == 2 {
		c.pauses = 2
	}
	if seed%4 == 0 {
		c.caps[queue.AgentSemaphore("a")] = 2
	}
	w.lines = c
	for i := range simRuns {
		m := &message{start: true}
		w.put("", m)
		w.of[m.seq] = messages.Ref{Tenant: "t", Run: fmt.Sprint("r", i)}
		w.refs = append(w.refs, w.of[m.seq])
	}
	synctest.Test(t, func(t *testing.T) { w.play(t) })
	for _, r := range w.refs {
		last, ok := w.last(r)
		if !w.ended(r) {
			w.wrong("%s is stranded: %t %s %s %v", r.Run, ok, last.Head.Phase, last.Head.Waits, last.Head.Kinds)
		} else if !w.told[r] {
			w.wrong("the end of %s was not published", r.Run)
		}
		if wrong := decidedOtherwise(w.log, r); wrong != "" {
			w.wrong("%s: %s", r.Run, wrong)
		}
	}
	return w
}

func TestSimulationOfLines(t *testing.T) {
	n := seeds(t) / 6
	var mu sync.Mutex
	bad, first := 0, ""
	t.Run("seeds", func(t *testing.T) {
		const chunks = 4
		for c := range uint64(chunks) {
			t.Run(strconv.FormatUint(c, 10), func(t *testing.T) {
				t.Parallel()
				for seed := c; seed < n; seed += chunks {
					if w := lineTrial(t, seed, false, false); w.bad != "" {
						mu.Lock()
						bad++
						first = w.bad
						mu.Unlock()
					}
				}
			})
		}
	})
	if bad > 0 {
		t.Errorf("%d of %d seeds; one: %s", bad, n, first)
	}
}

// Without the settle of an end or a park that is found, a run whose owner died there keeps its permit forever. A read that
// is stale leaves a run asleep that has its permit.
func TestSimulationOfLinesFailsWithout(t *testing.T) {
	for name, tc := range map[string]struct{ noSettle, stale bool }{
		"settle":      {noSettle: true},
		"fresh reads": {stale: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(60) {
				if lineTrial(t, seed, tc.noSettle, tc.stale).bad != "" {
					return
				}
			}
			t.Error("nothing was violated: the simulation does not see it")
		})
	}
}
