package runner_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
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

// simWorkspace lets all runs of a simulation with semaphores name one workspace, and add lines to a file there. Every second run
// waits for an answer between two lines.
type simWorkspace struct {
	files *simFiles
	heads *runlog.WorkspacesInMemory
	rules ablation
}

// What is switched off.
const (
	ownPermits ablation = "rule 31: each run has a permit of its own"
	takeAgain  ablation = "rule 31: each claim takes the files of the head"

	simShelf = "w"
)

type simHeads struct {
	p *process
	s *simWorkspace
}

func (h simHeads) Workspace(ctx context.Context, tenant, name string) (messages.Workspace, uint64, error) {
	if err := h.p.op("head"); err != nil {
		return messages.Workspace{}, 0, err
	}
	return h.s.heads.Workspace(ctx, tenant, name)
}

func (h simHeads) PutWorkspace(ctx context.Context, tenant, name string, revision uint64, w messages.Workspace) error {
	if err := h.p.op("put head"); err != nil {
		return err
	}
	return h.s.heads.PutWorkspace(ctx, tenant, name, revision, w)
}

// simPermits are the semaphores of a process.
type simPermits struct {
	simSemaphores
	w *sessionWorld
	s *simWorkspace
}

func (l simPermits) name(line string) string {
	if _, is := queue.WorkspaceOfSemaphore(line); is && l.s.rules == ownPermits && l.p.msg != nil {
		return queue.WorkspaceSemaphore("t", simShelf+l.w.of[l.p.msg.seq].Run)
	}
	return line
}

func (l simPermits) Semaphore(ctx context.Context, line string) (queue.Semaphore, uint64, error) {
	v, revision, err := l.simSemaphores.Semaphore(ctx, l.name(line))
	if l.s.rules == takeAgain {
		v.Permits = slices.Clone(v.Permits)
		for i := range v.Permits {
			v.Permits[i].Turn = v.Permits[i].Claim
		}
	}
	return v, revision, err
}

func (l simPermits) PutSemaphore(ctx context.Context, line string, revision uint64, v queue.Semaphore) error {
	return l.simSemaphores.PutSemaphore(ctx, l.name(line), revision, v)
}

func (s *simWorkspace) keep(k *runlog.Controller, p *process, w *sessionWorld) {
	if s == nil {
		return
	}
	k.Semaphores, k.Workspaces = simPermits{simSemaphores{p, w.lines}, w, s}, simHeads{p, s}
}

type shelfTool struct{ p *process }

func (shelfTool) Spec() messages.ToolSpec {
	return messages.ToolSpec{Name: "note", Description: "Adds a line.", Effect: messages.EffectIdempotent, InputSchema: []byte(`{"type":"object"}`)}
}

func (t shelfTool) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	if err := addLine(t.p, c.Workspace, c.Run.Run+" "+c.ID); err != nil {
		return tools.Result{}, err
	}
	return tools.Text("noted"), nil
}

type shelfModel struct{ p *process }

// Stream has a run note a line; every second run then asks, and notes another one.
func (m shelfModel) Stream(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := m.p.op("model"); err != nil {
			yield(model.Delta{}, err)
			return
		}
		turn := 0
		for i := range r.Messages {
			if r.Messages[i].Role == messages.RoleAssistant {
				turn++
			}
		}
		calls := []string{"note"}
		if r.Messages[0].Text() == "ask" {
			calls = []string{"note", "ask", "note"}
		}
		reply := &model.Reply{Message: messages.Message{Content: messages.TextContent("well")}, Stop: messages.StopEnd}
		if turn < len(calls) {
			call := messages.ToolCall{ID: fmt.Sprint("c", turn), Name: calls[turn], Arguments: "{}"}
			reply.Message.Content, reply.Stop = []messages.Block{{ToolCall: &call}}, messages.StopToolCalls
		}
		yield(model.Delta{Reply: reply}, nil)
	}
}

func (s *simWorkspace) work(t *testing.T, p *process, cfg *runner.Config, ticket *runner.Ticket) {
	t.Helper()
	if s == nil {
		return
	}
	set, err := tools.NewSet(lineTool{p}, shelfTool{p})
	if err != nil {
		t.Error(err)
	}
	cfg.Tools, cfg.Model = set, shelfModel{p}
	cfg.Agent = func(context.Context, string) (messages.Definition, error) {
		d := messages.Definition{Name: "a", Tools: []string{"ask", "note"}}
		d.SetDefaults()
		return d, nil
	}
	cfg.Folders = s.files.machines[p.id%2]
	if ticket.After == 0 {
		input := "go"
		if n, _ := strconv.Atoi(strings.TrimPrefix(ticket.Run.Run, "r")); n%2 == 1 {
			input = "ask"
		}
		ticket.Body = []byte(`{"agent":"a","input":"` + input + `","workspace":"` + simShelf + `"}`)
	}
}

// happen lets the store lose what nothing refers to. The caller holds mu.
func (s *simWorkspace) happen(w *sessionWorld, chaos bool) {
	if s == nil || !chaos || w.rnd.IntN(30) != 0 {
		return
	}
	s.files.collect(s.head().Manifest)
}

func (s *simWorkspace) head() messages.Workspace {
	h, _, _ := s.heads.Workspace(context.Background(), "t", simShelf)
	return h
}

// judge compares the file with the calls that have a result, in the order of the turns in which they were made.
func (s *simWorkspace) judge(w *sessionWorld) {
	type line struct {
		turn, seq uint64
		text      string
	}
	var lines []line
	for _, run := range w.refs {
		turn := uint64(0)
		for e := range w.log.Read(context.Background(), run, 0, runlog.Tail) {
			for _, r := range e.Records {
				switch r := r.(type) {
				case *record.FilesSaved:
					if r.Taken != nil {
						turn = r.Taken.Turn
					}
				case *record.ToolReturned:
					if r.Name == "note" && !r.Result.IsError {
						lines = append(lines, line{turn, e.Seq, run.Run + " " + r.Result.CallID + "\n"})
					}
				}
			}
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.seq, b.seq)) })
	var want strings.Builder
	for _, l := range lines {
		want.WriteString(l.text)
	}
	head := s.head().Manifest
	s.files.refs = map[string]bool{} // the runs are purged, and the workspace is not
	s.files.collect(head)
	if got := s.files.book(head); got != want.String() {
		w.wrong("the file has %q, the logs %q", got, want.String())
	}
}

func workspaceTrial(t *testing.T, seed uint64, rules ablation) *sessionWorld {
	t.Helper()
	w := &sessionWorld{
		world: &world{
			seed: seed, rnd: rand.New(rand.NewPCG(seed, 8)), log: &runlog.Memory{}, tasks: map[uint64]*message{}, timers: map[string]*message{},
			claims: map[string]*process{},
		},
		sessions: &runlog.SessionsInMemory{}, of: map[uint64]messages.Ref{}, told: map[messages.Ref]bool{}, sums: map[string]int{},
	}
	s := &simWorkspace{files: newSimFiles(t, seed, false), heads: &runlog.WorkspacesInMemory{}, rules: rules}
	w.lines = &simCapped{
		lines: &runlog.SemaphoresInMemory{}, caps: map[string]int{}, owed: map[string]int{}, looks: map[string]*process{},
		at: map[*process]map[string]int{}, ops: rand.New(rand.NewPCG(seed, 5)), shelf: s,
	}
	if seed%3 == 0 {
		w.lines.caps[queue.TenantSemaphore("t")] = simTenantCap
	}
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
	s.judge(w)
	return w
}

// Whatever happens to workers, each line that a log says was added is in the workspace once, in the order of the turns, and stays when the
// runs are purged.
func TestSimulationOfWorkspaces(t *testing.T) {
	n := seeds(t) / 40
	var mu sync.Mutex
	bad, first := 0, ""
	t.Run("seeds", func(t *testing.T) {
		const chunks = 4
		for c := range uint64(chunks) {
			t.Run(strconv.FormatUint(c, 10), func(t *testing.T) {
				t.Parallel()
				for seed := c; seed < n; seed += chunks {
					if w := workspaceTrial(t, seed, allRules); w.bad != "" {
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

func TestSimulationOfWorkspacesFailsWithout(t *testing.T) {
	for _, rules := range []ablation{ownPermits, takeAgain} {
		t.Run(string(rules), func(t *testing.T) {
			for seed := range uint64(100) {
				if bad := workspaceTrial(t, seed, rules).bad; bad != "" {
					t.Log(bad)
					return
				}
			}
			t.Error("nothing was violated: the simulation does not see it")
		})
	}
}
