package agent_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// anew is the size of a state that has counted nothing yet, so that it looks at all that was said.
func anew(s *agent.State) int64 {
	bare := agent.State{
		Task: s.Task, Agent: s.Agent, Tools: s.Tools, Transcript: s.Transcript, Recalled: s.Recalled, Remembered: s.Remembered, Open: s.Open, Plan: s.Plan,
	}
	return bare.Bytes()
}

func checkBytes(t *testing.T, s *agent.State, after string) {
	t.Helper()
	if got, want := s.Bytes(), anew(s); got != want {
		t.Fatalf("after %s: %d bytes, and anew %d", after, got, want)
	}
}

// history makes records of a run that uses tools, at random.
type history struct {
	*rand.Rand

	step int
}

func (h *history) text() string { return strings.Repeat("é", h.IntN(50)) }

func (h *history) blocks() []messages.Block {
	out := messages.TextContent(h.text())
	if h.IntN(3) == 0 {
		out = append(out, messages.Block{Image: &messages.Image{MediaType: "image/png", Data: make([]byte, h.IntN(100))}})
	}
	return out
}

func (h *history) said(n int) (out []messages.Message) {
	for range n {
		out = append(out, messages.Message{Role: messages.RoleUser, Content: h.blocks()}, spoken(messages.RoleAssistant, h.text()))
	}
	return out
}

// next are the records of a step, and of what else may come between two of them.
func (h *history) next() []record.Record {
	h.step++
	out := []record.Record{step(h.step)}
	reply := &record.ModelReplied{Step: h.step, Stop: messages.StopToolCalls, Message: messages.Message{Role: messages.RoleAssistant, Content: h.blocks()}}
	results := make([]record.Record, 0, 3)
	for i := range 1 + h.IntN(3) {
		c := messages.ToolCall{ID: fmt.Sprint("c", i), Name: "t", Arguments: fmt.Sprintf("{%q:%q}", h.text(), h.text())}
		reply.Message.Content = append(reply.Message.Content, messages.Block{ToolCall: &c})
		results = append(results, &record.ToolStarted{Step: h.step, Call: c}, &record.ToolReturned{
			Step: h.step, Name: "t", Millis: int64(h.IntN(5)), Result: messages.ToolResult{CallID: c.ID, Content: h.blocks(), IsError: h.IntN(4) == 0},
		})
	}
	switch h.IntN(5) {
	case 0:
		out = append(out, &record.Steered{Message: h.text()})
	case 1:
		out = append(out, &record.Claimed{Claim: h.text()})
	}
	return append(append(out, reply), results...)
}

// Whatever a run does, the sum that is kept is what a look at all that was said would find: also in a state from a cache, in one beside
// which another was advanced and given up, and in a fork.
func TestBytesAreThoseOfAWalk(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 1))}
		s := &agent.State{}
		var begun record.Records
		advance := func(rs ...record.Record) {
			for _, r := range rs {
				if err := s.Advance(r); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				checkBytes(t, s, fmt.Sprintf("%T with seed %d", r, seed))
			}
		}
		d := messages.Definition{Name: "a", Instructions: h.text()}
		d.SetDefaults()
		first := &record.Started{Task: messages.Task{Input: h.blocks()}, Agent: d, Tools: []messages.ToolSpec{{Name: "t", Description: h.text()}}}
		advance(first)
		if h.IntN(2) == 0 {
			advance(&record.Recalled{Messages: h.said(4), Older: h.IntN(8)}, &record.Summarised{Text: h.text()})
		}
		for range 12 {
			rs := h.next()
			if h.IntN(4) == 0 { // an append that fails is given up
				given := s.Clone()
				for _, r := range (&history{h.Rand, h.step}).next() {
					if err := given.Advance(r); err != nil {
						t.Fatal(err)
					}
				}
				checkBytes(t, given, "a step that is given up")
				checkBytes(t, s, "a step beside it")
			}
			s = s.Clone()
			advance(rs...)
			begun = append(begun, rs...)
			if h.IntN(4) == 0 {
				cached, err := agent.Decode(encode(t, s))
				if err != nil {
					t.Fatal(err)
				}
				s = cached
				checkBytes(t, s, "a cache")
			}
		}
		fork := &agent.State{}
		forked := *first
		forked.Prefix = begun
		if err := fork.Advance(&forked); err != nil {
			t.Fatal(err)
		}
		checkBytes(t, fork, "a fork")
	}
}

// The logs of every kind of run.
func TestBytesOfGoldenLogs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../messages/testdata/logs/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden logs: %v", err)
	}
	for _, file := range files {
		s := &agent.State{}
		for _, e := range readLog(t, file) {
			if err := s.Apply(e); err != nil {
				t.Fatal(err)
			}
			checkBytes(t, s, fmt.Sprintf("entry %d of %s", e.Seq, file))
		}
	}
}

// A run asks for its size several times at each step. Asking must not look at all that was said.
func BenchmarkBytes(b *testing.B) {
	for _, steps := range []int{10, 3000} {
		b.Run(strconv.Itoa(steps), func(b *testing.B) {
			h, s := &history{Rand: rand.New(rand.NewPCG(1, 1))}, &agent.State{}
			rs := []record.Record{&record.Started{Agent: messages.Definition{Name: "a"}}}
			for range steps {
				rs = append(rs, h.next()...)
			}
			for _, r := range rs {
				if err := s.Advance(r); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				s.Bytes()
			}
		})
	}
}
