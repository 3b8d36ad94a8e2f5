package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/model"
)

// talker answers "re: " and what was asked last. It keeps what it was shown, and holds calls that ask to "hold".
type talker struct {
	mu    sync.Mutex
	shown map[string][]string // by what was asked: role and text of each message
	holds chan struct{}       // closed: calls are no longer held
	began chan string         // calls that are held
	sums  []string            // what summaries were asked of
}

func newTalker() *talker {
	return &talker{shown: map[string][]string{}, holds: make(chan struct{}), began: make(chan string, 16)}
}

func (m *talker) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		asked := r.Messages[len(r.Messages)-1].Text()
		answer := "re: " + asked
		m.mu.Lock()
		if strings.Contains(r.Messages[0].Text(), "You sum up") {
			m.sums = append(m.sums, asked)
			answer = fmt.Sprintf("sum %d", len(m.sums))
		} else {
			var shown []string
			for _, c := range r.Messages[1:] {
				shown = append(shown, string(c.Role)+": "+c.Text())
			}
			m.shown[asked] = shown
		}
		m.mu.Unlock()
		if strings.Contains(asked, "hold") && !strings.HasPrefix(answer, "sum") {
			m.began <- asked
			select {
			case <-m.holds:
			case <-ctx.Done():
				yield(model.Delta{}, context.Cause(ctx))
				return
			}
		}
		yield(model.Delta{Reply: &model.Reply{
			Message: messages.Message{Content: messages.TextContent(answer)}, Stop: messages.StopEnd,
			Usage: messages.Usage{Input: 10, Output: 2, Total: 12},
		}}, nil)
	}
}

func (m *talker) saw(asked string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shown[asked]
}

// say works a task of a session to its end.
func (h *house) say(session, text string) *messages.AgentResult {
	h.t.Helper()
	r := h.result(h.submit(messages.Task{Session: session, Input: messages.TextInput(text)}))
	if !r.Success {
		h.t.Fatalf("%q: %+v", text, r.Error)
	}
	return r
}

func (m *talker) began1(t *testing.T) string {
	t.Helper()
	select {
	case asked := <-m.began:
		return asked
	case <-time.After(patience):
		t.Fatal("the model was not called")
		return ""
	}
}

func TestSessionTakesTurns(t *testing.T) {
	h := open(t, 30*time.Second)
	m := newTalker()
	h.worker("w1", m, worker.Config{})
	h.worker("w2", m, worker.Config{})
	first := h.submit(messages.Task{Session: "s", Input: messages.TextInput("hold one")})
	m.began1(t)
	second := h.submit(messages.Task{Session: "s", Input: messages.TextInput("two")})
	other := h.submit(messages.Task{Session: "s", Tenant: "other", Input: messages.TextInput("three")})
	h.until(second, messages.EventRunWaiting)
	h.result(other) // another tenant's session of that name
	if diff := cmp.Diff([]string{"user: three"}, m.saw("three")); diff != "" {
		t.Error(diff)
	}
	st, err := h.client.Status(t.Context(), second)
	if err != nil || st.Status != messages.StatusWaiting || st.Waits != queue.ParkSession {
		t.Errorf("status: %+v, %v", st, err)
	}
	close(m.holds)
	h.result(first)
	r := h.result(second)
	if r.Result != "re: two" || r.SessionID != "s" {
		t.Errorf("result: %+v", r)
	}
	if diff := cmp.Diff([]string{"user: hold one", "assistant: re: hold one", "user: two"}, m.saw("two")); diff != "" {
		t.Error(diff)
	}
	want := []string{"run_queued", "run_started", "run_waiting", "run_resumed", "step_start", "message_end", "step_end", "turn_end", "run_finished"}
	if diff := cmp.Diff(want, names(h.events(second))); diff != "" {
		t.Error(diff)
	}
	s, _, err := sessions.New(h.bus, h.logs()).Session(t.Context(), messages.DefaultTenant, "s")
	if err != nil || len(s.Runs) != 0 || !slices.Equal(s.Ended, []string{first.Run, second.Run}) {
		t.Errorf("session: %+v, %v", s, err)
	}
}

func TestSessionCancelOfAWaitingRun(t *testing.T) {
	h := open(t, 30*time.Second)
	m := newTalker()
	h.worker("w", m, worker.Config{})
	h.submit(messages.Task{Session: "s", Input: messages.TextInput("hold one")})
	m.began1(t)
	second := h.submit(messages.Task{Session: "s", Input: messages.TextInput("two")})
	h.until(second, messages.EventRunWaiting)
	third := h.submit(messages.Task{Session: "s", Input: messages.TextInput("three")})
	h.until(third, messages.EventRunWaiting)
	if _, err := h.client.Cancel(t.Context(), second, "enough"); err != nil {
		t.Fatal(err)
	}
	if r := h.result(second); r.Status != messages.StatusCancelled {
		t.Errorf("second: %+v", r)
	}
	s, _, err := sessions.New(h.bus, h.logs()).Session(t.Context(), messages.DefaultTenant, "s")
	if err != nil || slices.Contains(s.Runs, second.Run) || slices.Contains(s.Ended, second.Run) {
		t.Errorf("session: %+v, %v", s, err)
	}
	close(m.holds)
	h.result(third)
	if diff := cmp.Diff([]string{"user: hold one", "assistant: re: hold one", "user: three"}, m.saw("three")); diff != "" {
		t.Error(diff)
	}
}

// Redis has the conversation, the log has it too.
func TestSessionWithoutRedis(t *testing.T) {
	h := open(t, 30*time.Second)
	opt, err := redis.ParseURL(h.servers.RedisURL)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { _ = rdb.Close() })
	short, err := memory.New(rdb, memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h.run(short.Run)
	h.conversations = conversationCache{short}
	m := newTalker()
	h.worker("w", m, worker.Config{})
	h.say("s", "one")
	key := messages.Ref{Tenant: messages.DefaultTenant, Run: "s"}
	eventually(t, "the conversation is cached", func() bool { _, ok := short.Load(t.Context(), key); return ok })
	hits := short.Stats().Hits
	h.say("s", "two")
	if short.Stats().Hits == hits {
		t.Error("the conversation was not read from Redis")
	}
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	h.say("s", "three")
	want := []string{"user: one", "assistant: re: one", "user: two", "assistant: re: two", "user: three"}
	if diff := cmp.Diff(want, m.saw("three")); diff != "" {
		t.Error(diff)
	}
}

type conversationCache struct{ *memory.ShortTerm }

func (c conversationCache) Load(ctx context.Context, run messages.Ref) (seq uint64, entryID string, data []byte, ok bool) {
	snap, ok := c.ShortTerm.Load(ctx, run)
	return snap.Seq, snap.EntryID, snap.Data, ok
}

func (c conversationCache) Save(run messages.Ref, seq uint64, entryID string, data []byte) {
	c.ShortTerm.Save(run, memory.Snapshot{Seq: seq, EntryID: entryID, Data: data})
}

func (c conversationCache) Wants() bool { return true }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time: " + what)
		}
	}
}

// What holds the order of the sessions is lost: it is made again from the logs.
func TestSessionOrderLost(t *testing.T) {
	for name, lose := range map[string]string{
		"one key":    "$KV.SESSIONS.default.s",
		"the bucket": "",
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, 30*time.Second)
			m := newTalker()
			h.worker("w", m, worker.Config{})
			h.say("s", "zero")
			first := h.submit(messages.Task{Session: "s", Input: messages.TextInput("hold one")})
			m.began1(t)
			second := h.submit(messages.Task{Session: "s", Input: messages.TextInput("two")})
			h.until(second, messages.EventRunWaiting)
			if lose != "" { // as `nats kv del` does
				if _, err := h.nc.RequestMsg(deletion(lose), patience); err != nil {
					t.Fatal(err)
				}
			} else if _, err := h.nc.Request("$JS.API.STREAM.PURGE.KV_SESSIONS", nil, patience); err != nil {
				t.Fatal(err)
			}
			third := h.submit(messages.Task{Session: "s", Input: messages.TextInput("three")})
			h.until(third, messages.EventRunWaiting)
			s, _, err := sessions.New(h.bus, h.logs()).Session(t.Context(), messages.DefaultTenant, "s")
			if err != nil || !slices.Equal(s.Runs, []string{first.Run, second.Run, third.Run}) || len(s.Ended) != 1 {
				t.Errorf("session: %+v, %v", s, err)
			}
			close(m.holds)
			h.result(third)
			want := []string{
				"user: zero", "assistant: re: zero", "user: hold one", "assistant: re: hold one", "user: two", "assistant: re: two", "user: three",
			}
			if diff := cmp.Diff(want, m.saw("three")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func deletion(subject string) *nats.Msg {
	return &nats.Msg{Subject: subject, Header: nats.Header{"KV-Operation": {"DEL"}}}
}

// A summary is made once, though the worker that asked for it is gone.
func TestSessionSummaryIsMadeOnce(t *testing.T) {
	def := messages.Definition{Name: "brief", Instructions: "Be brief.", Session: &messages.SessionPolicy{MaxMessages: 2, Summary: messages.SummaryOn}}
	h := open(t, 30*time.Second, def)
	m := newTalker()
	_, stop := h.worker("w1", m, worker.Config{DrainTimeout: time.Millisecond})
	say := func(text string) messages.Ref {
		return h.submit(messages.Task{Session: "s", Agent: "brief", Input: messages.TextInput(text)})
	}
	h.result(say("one"))
	h.result(say("two"))
	third := say("hold three") // with one and two before it there is something to sum up
	m.began1(t)
	stop() // the summary is in the log, the reply is not
	h.worker("w2", m, worker.Config{})
	close(m.holds)
	r := h.result(third)
	if !r.Success || len(r.ModelCalls) != 2 || r.TokenUsage.Total != 24 {
		t.Errorf("result: %+v", r)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sums) != 1 || !strings.Contains(m.sums[0], "user: one") {
		t.Errorf("summaries of: %q", m.sums)
	}
	if diff := cmp.Diff([]string{"user: Summary of the conversation before:\nsum 1", "user: hold three"}, m.shown["hold three"]); diff != "" {
		t.Error(diff)
	}
}

// A summary is a reply of a model, and rules look at it as at any other.
func TestSessionSummaryIsJudged(t *testing.T) {
	for _, action := range []string{messages.PolicyRedact, messages.PolicyBlock} {
		t.Run(action, func(t *testing.T) {
			h := open(t, 30*time.Second, messages.Definition{
				Name: "brief", Instructions: "Be brief.", Session: &messages.SessionPolicy{MaxMessages: 2, Summary: messages.SummaryOn},
				Policy: &messages.Policy{Content: []messages.ContentRule{{Name: "sums", At: []messages.PolicyPoint{messages.PolicyReply}, Pattern: "sum [0-9]", Action: action}}},
			})
			m := newTalker()
			h.worker("w", m, worker.Config{})
			var r *messages.AgentResult
			for _, said := range []string{"one", "two", "three"} {
				r = h.result(h.submit(messages.Task{Session: "s", Agent: "brief", Input: messages.TextInput(said)}))
			}
			if action == messages.PolicyBlock {
				if r.Error == nil || r.Error.Code != messages.CodePolicy || m.saw("three") != nil {
					t.Errorf("result: %+v, the model saw %q", r, m.saw("three"))
				}
				return
			}
			if diff := cmp.Diff([]string{"user: Summary of the conversation before:\n[redacted]", "user: three"}, m.saw("three")); diff != "" || !r.Success {
				t.Error(diff, r.Error)
			}
		})
	}
}

// A run without a session never asks for one, and costs what it cost.
func TestNoSessionCostsNothing(t *testing.T) {
	h := open(t, 30*time.Second)
	h.worker("w", newTalker(), worker.Config{})
	var mu sync.Mutex
	asked := 0
	sub, err := h.conn().Subscribe("$JS.API.STREAM.MSG.GET.KV_SESSIONS", func(*nats.Msg) { mu.Lock(); asked++; mu.Unlock() })
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		t.Fatal(err)
	}
	run := h.submit(messages.Task{Input: messages.TextInput("alone")})
	if r := h.result(run); !r.Success {
		t.Fatal(r.Error)
	}
	entries := 0
	for _, err := range h.logs().Heads(t.Context(), run, 0, 1<<62) {
		if err != nil {
			t.Fatal(err)
		}
		entries++
	}
	mu.Lock()
	defer mu.Unlock()
	if asked != 0 || entries != 2 {
		t.Errorf("%d requests for sessions, %d entries", asked, entries)
	}
	var info struct {
		State struct {
			Messages uint64 `json:"messages"`
		} `json:"state"`
	}
	msg, err := h.nc.Request("$JS.API.STREAM.INFO.KV_SESSIONS", nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(msg.Data, &info); err != nil || info.State.Messages != 0 {
		t.Errorf("%d messages in the bucket, %v", info.State.Messages, err)
	}
}

func TestSessionIsFull(t *testing.T) {
	h := open(t, 30*time.Second)
	full := messages.Session{Runs: make([]string, messages.MaxSessionRuns)}
	for i := range full.Runs {
		full.Runs[i] = fmt.Sprint("x", i)
	}
	if err := sessions.New(h.bus, h.logs()).PutSession(t.Context(), messages.DefaultTenant, "s", 0, full); err != nil {
		t.Fatal(err)
	}
	first := record.Entry{Records: []record.Record{&record.StepStarted{Step: 1}}} // else all are taken out as gone
	first.Head = record.Head{ID: "x", Version: 1, Time: time.Now(), Kinds: []record.Kind{record.KindStepStarted}, Phase: record.PhaseActive, FirstEvent: 1}
	if _, err := h.logs().Append(t.Context(), messages.Ref{Tenant: messages.DefaultTenant, Run: full.Runs[0]}, 0, first); err != nil {
		t.Fatal(err)
	}
	h.worker("w", newTalker(), worker.Config{})
	r := h.result(h.submit(messages.Task{Session: "s", Input: messages.TextInput("one more")}))
	if r.Error == nil || r.Error.Code != messages.CodeConflict || !strings.Contains(r.Error.Message, "1000 runs") {
		t.Errorf("result: %+v", r.Error)
	}
}
