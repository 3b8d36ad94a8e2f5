package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/files"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/memorylimit"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// endless is a model whose reply does not end before it is given up.
type endless struct{ pieces *int }

func (m endless) Stream(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	text := strings.Repeat("x", 64<<10)
	return func(yield func(model.Delta, error) bool) {
		for yield(model.Delta{Text: text}, nil) {
			*m.pieces++
		}
	}
}

// heavy is a tool whose calls may hold so many bytes.
type heavy struct {
	tools.Tool

	bytes int64
}

func (h heavy) Weight(*tools.Call) int64 { return h.bytes }

// loads is a reply that calls the tool load.
func loads() *model.Reply {
	call := messages.Block{ToolCall: &messages.ToolCall{ID: "c", Name: "load", Arguments: "{}"}}
	return &model.Reply{Stop: messages.StopToolCalls, Message: messages.Message{Content: []messages.Block{call}}}
}

// bounded is a runner with a budget, and the log of its runs.
func bounded(t *testing.T, b *memorylimit.Budget, m model.Provider, ts ...tools.Tool) (*runner.Runner, *runlog.Memory) {
	t.Helper()
	log := &runlog.Memory{}
	return boundedOn(t, t.TempDir(), log, nil, b, m, ts...), log
}

// boundedOn is bounded with files in a folder, on a log, with a cache or nil.
func boundedOn(
	t *testing.T, dir string, log runlog.Log, cache runner.Cache, b *memorylimit.Budget, m model.Provider, ts ...tools.Tool,
) *runner.Runner {
	t.Helper()
	set, err := tools.NewSet(ts...)
	if err != nil {
		t.Fatal(err)
	}
	def := messages.Definition{Name: "a"}
	for _, tool := range ts {
		def.Tools = append(def.Tools, tool.Spec().Name)
	}
	def.SetDefaults()
	return runner.New(runner.Config{
		Worker: "w", Tools: set, Model: m, Budget: b, Cache: cache,
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) {
			return sandbox.Open(dir, sandbox.Limits{FileSize: 8 << 20})
		},
		Agent:      func(context.Context, string) (messages.Definition, error) { return def, nil },
		Controller: &runlog.Controller{Log: log, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }},
	})
}

// last is the newest record of the run in a log.
func last(t *testing.T, log *runlog.Memory) (r record.Record) {
	t.Helper()
	for e, err := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		r = e.Records[len(e.Records)-1]
	}
	return r
}

// A run that asks for more memory than a run may have ends, and says so.
func TestRunBeyondItsShareEnds(t *testing.T) {
	t.Parallel()
	heard := 0
	calls := rmodel(func(context.Context, model.Request) (*model.Reply, error) { return loads(), nil })
	load, err := tools.Func(messages.ToolSpec{Name: "load", Description: "Load.", Effect: messages.EffectRead},
		func(context.Context, tools.Call, struct{}) (tools.Result, error) {
			t.Error("the call was made")
			return tools.Text("loaded"), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		limit int64
		model model.Provider
		tools []tools.Tool
	}{
		"a reply":     {8 << 20, endless{&heard}, nil},
		"a tool call": {64 << 20, calls, []tools.Tool{heavy{load, 32 << 20}}},
	} {
		b := memorylimit.New(c.limit)
		r, log := bounded(t, b, c.model, c.tools...)
		if out, err := r.Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
			t.Fatalf("%s: %v, %v", name, out, err)
		}
		end, ok := last(t, log).(*record.Finished)
		if !ok || end.Result.Error == nil || end.Result.Error.Code != messages.CodeMemoryLimit || !strings.Contains(end.Result.Error.Message, "LONGSHORE_MEMORY_LIMIT") {
			t.Errorf("%s: it ended with %+v", name, last(t, log))
		}
		if got := b.Stats(); got.Used != 0 || got.Waiting != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if heard > 2<<20/(64<<10) { // a quarter of the share of 4 MiB, and a little more
		t.Errorf("%d pieces of the reply were read", heard)
	}
}

// take leaves nothing of a budget for a run that is not its senior.
func take(t *testing.T, b *memorylimit.Budget) (giveBack func()) {
	t.Helper()
	common, senior := b.Open("other", 0), b.Open("other", 0)
	has := b.Stats()
	for _, err := range []error{common.Hold(t.Context(), has.Limit-b.Share()-has.Used), senior.Hold(t.Context(), 1<<20)} {
		if err != nil {
			t.Error(err)
		}
	}
	return func() {
		common.Close()
		senior.Close()
	}
}

// A run waits while others hold what it needs, and is not claimed until then.
func TestRunWaitsForMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memorylimit.New(8 << 20)
		giveBack := take(t, b)
		r, log := bounded(t, b, rmodel(func(context.Context, model.Request) (*model.Reply, error) { return say("done"), nil }))
		out := make(chan runner.Outcome, 1)
		go func() {
			o, err := r.Run(t.Context(), rticket(1))
			if err != nil {
				t.Error(err)
			}
			out <- o
		}()
		synctest.Wait()
		if got := b.Stats(); got.Waiting != 1 || last(t, log) != nil {
			t.Errorf("%+v, and the log has %v", got, last(t, log))
		}
		giveBack()
		if got := <-out; got != runner.Done {
			t.Errorf("%v", got)
		}
	})
}

// A task that waits for memory before its run begins is handed back after a while, for a worker that has some. But that counts as a delivery, too
// many of which would end the run unread: later it waits where it is.
func TestTaskThatWaitsForMemoryIsNotUsedUp(t *testing.T) {
	t.Parallel()
	const attempts = 5
	for delivered, back := range map[int]bool{1: true, attempts: true, attempts + 1: false, 3 * attempts: false} {
		t.Run(strconv.Itoa(delivered), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := memorylimit.New(8 << 20)
				giveBack := take(t, b)
				r, log := bounded(t, b, rmodel(func(context.Context, model.Request) (*model.Reply, error) { return say("done"), nil }))
				ticket := rticket(1)
				ticket.Delivered = delivered
				began := time.Now()
				if back {
					if o, err := r.Run(t.Context(), ticket); o != runner.Return || !errors.Is(err, runner.ErrNoMemory) || time.Since(began) != 10*time.Minute || last(t, log) != nil {
						t.Errorf("%v, %v after %s, and the log has %v", o, err, time.Since(began), last(t, log))
					}
					giveBack()
					return
				}
				time.AfterFunc(5*time.Hour, giveBack)
				if o, err := r.Run(t.Context(), ticket); o != runner.Done || err != nil || time.Since(began) != 5*time.Hour {
					t.Errorf("%v, %v after %s", o, err, time.Since(began))
				}
			})
		})
	}
}

// A run that waits for memory is handed back when its worker drains, and after a while when others hold what it needs. That is no attempt.
func TestRunThatWaitsForMemoryIsHandedBack(t *testing.T) {
	t.Parallel()
	read, err := tools.Func(messages.ToolSpec{Name: "load", Description: "Load.", Effect: messages.EffectRead},
		func(context.Context, tools.Call, struct{}) (tools.Result, error) { return tools.Text("loaded"), nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		drains bool
		want   error
		after  time.Duration
	}{
		"the worker drains": {true, runner.ErrShutdown, 0}, "others hold it for long": {false, runner.ErrNoMemory, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := memorylimit.New(8 << 20)
				var giveBack func()
				r, log := bounded(t, b, rmodel(func(context.Context, model.Request) (*model.Reply, error) {
					giveBack = take(t, b)
					return loads(), nil
				}), read)
				type end struct {
					outcome runner.Outcome
					err     error
				}
				ended, began := make(chan end, 1), time.Now()
				go func() {
					o, err := r.Run(t.Context(), rticket(1))
					ended <- end{o, err}
				}()
				synctest.Wait()
				if b.Stats().Waiting != 1 {
					t.Errorf("%+v", b.Stats())
				}
				if c.drains {
					r.Drain()
				}
				if got := <-ended; got.outcome != runner.Return || !errors.Is(got.err, c.want) || time.Since(began) != c.after {
					t.Errorf("%v, %v, after %s", got.outcome, got.err, time.Since(began))
				}
				if released, ok := last(t, log).(*record.Released); !ok || released.Spent {
					t.Errorf("the log ends with %+v", last(t, log))
				}
				giveBack()
				if got := b.Stats(); got.Used != 0 || got.Waiting != 0 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// A ticket that comes while another of its run is worked, and is handed back, leaves nothing of itself in the budget.
func TestTicketOfABusyRunHoldsNoMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memorylimit.New(8 << 20)
		asked, reply := make(chan struct{}), make(chan struct{})
		r, _ := bounded(t, b, rmodel(func(context.Context, model.Request) (*model.Reply, error) {
			close(asked)
			<-reply
			return say("done"), nil
		}))
		first := make(chan error, 1)
		go func() {
			_, err := r.Run(t.Context(), rticket(1))
			first <- err
		}()
		<-asked
		if o, err := r.Run(t.Context(), rticket(2)); o != runner.Return || !errors.Is(err, runner.ErrBusy) {
			t.Errorf("the second ticket: %v, %v", o, err)
		}
		close(reply)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if got := b.Stats(); got.Used != 0 {
			t.Errorf("%d bytes are held by no run", got.Used)
		}
	})
}

// A run that waits for memory ends at once when it is cancelled.
func TestRunThatWaitsForMemoryIsCancelled(t *testing.T) {
	t.Parallel()
	load, err := tools.Func(messages.ToolSpec{Name: "load", Description: "Load.", Effect: messages.EffectRead},
		func(context.Context, tools.Call, struct{}) (tools.Result, error) { return tools.Text("loaded"), nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]func(crowd func()) model.Provider{
		"before a call": func(crowd func()) model.Provider {
			return rmodel(func(context.Context, model.Request) (*model.Reply, error) {
				crowd()
				return loads(), nil
			})
		},
		"in a reply": func(crowd func()) model.Provider { return crowding{crowd} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := memorylimit.New(8 << 20)
				giveBack := func() {}
				r, log := bounded(t, b, m(func() { giveBack = take(t, b) }), load)
				ended, began := make(chan runner.Outcome, 1), time.Now()
				go func() {
					o, err := r.Run(t.Context(), rticket(1))
					if err != nil {
						t.Error(err)
					}
					ended <- o
				}()
				synctest.Wait()
				if b.Stats().Waiting != 1 {
					t.Errorf("%+v", b.Stats())
				}
				k := &runlog.Controller{Log: log, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
				if _, err := k.Control(t.Context(), rrun, &record.CancelRequested{ID: "c"}); err != nil {
					t.Fatal(err)
				}
				r.Nudge(rrun)
				if o := <-ended; o != runner.Done || time.Since(began) > 0 {
					t.Errorf("%v after %s", o, time.Since(began))
				}
				if end, ok := last(t, log).(*record.Finished); !ok || end.Result.Status != messages.StatusCancelled {
					t.Errorf("the log ends with %+v", last(t, log))
				}
				giveBack()
				if got := b.Stats(); got.Used != 0 || got.Waiting != 0 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// A run that waits for memory ends when its time is over.
func TestRunThatWaitsForMemoryEndsInTime(t *testing.T) {
	t.Parallel()
	load, err := tools.Func(messages.ToolSpec{Name: "load", Description: "Load.", Effect: messages.EffectRead},
		func(context.Context, tools.Call, struct{}) (tools.Result, error) { return tools.Text("loaded"), nil })
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := memorylimit.New(8 << 20)
		var giveBack func()
		r, log := bounded(t, b, rmodel(func(context.Context, model.Request) (*model.Reply, error) {
			giveBack = take(t, b)
			return loads(), nil
		}), load)
		ticket, began := rticket(1), time.Now()
		ticket.Body = []byte(`{"input": "hello", "deadline": "` + began.Add(time.Minute).Format(time.RFC3339) + `"}`)
		if o, err := r.Run(t.Context(), ticket); o != runner.Done || err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v, %v after %s", o, err, time.Since(began))
		}
		if end, ok := last(t, log).(*record.Finished); !ok || end.Result.Error == nil || end.Result.Error.Code != messages.CodeDeadline {
			t.Errorf("the log ends with %+v", last(t, log))
		}
		giveBack()
	})
}

// crowding is a model that has others take the memory once it has begun to answer, and then answers much.
type crowding struct{ crowd func() }

func (m crowding) Stream(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		m.crowd()
		text := strings.Repeat("x", 64<<10)
		_ = yield(model.Delta{Text: text}, nil) && yield(model.Delta{Reply: say(text)}, nil)
	}
}

// A run may have to wait for memory with the entry that begins it.
func TestFirstEntryWaitsForMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, log := memorylimit.New(8<<20), &runlog.Memory{}
		var giveBack func()
		r := runner.New(runner.Config{
			Worker: "w", Budget: b, Model: rmodel(func(context.Context, model.Request) (*model.Reply, error) { return say("done"), nil }),
			Agent: func(context.Context, string) (messages.Definition, error) {
				giveBack = take(t, b)
				def := messages.Definition{Name: "a"}
				def.SetDefaults()
				return def, nil
			},
			Controller: &runlog.Controller{Log: log, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }},
		})
		out := make(chan runner.Outcome, 1)
		go func() {
			o, err := r.Run(t.Context(), rticket(1))
			if err != nil {
				t.Error(err)
			}
			out <- o
		}()
		synctest.Wait()
		if got := b.Stats(); got.Waiting != 1 || last(t, log) != nil {
			t.Errorf("%+v, and the log has %v", got, last(t, log))
		}
		giveBack()
		if got := <-out; got != runner.Done {
			t.Errorf("%v", got)
		}
	})
}

// A reply that waits for the memory of its entry is recorded when the worker stops, and not paid for again.
func TestReplyWithoutMemoryIsRecordedWhenTheWorkerStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memorylimit.New(8 << 20)
		var giveBack func()
		r, log := bounded(t, b, crowdingAfter{func() { giveBack = take(t, b) }})
		ctx, stop := context.WithCancelCause(t.Context())
		ended := make(chan runner.Outcome, 1)
		go func() {
			o, _ := r.Run(ctx, rticket(1))
			ended <- o
		}()
		synctest.Wait()
		if b.Stats().Waiting != 1 {
			t.Errorf("%+v", b.Stats())
		}
		r.Drain()
		stop(runner.ErrShutdown)
		if o := <-ended; o != runner.Done {
			t.Errorf("%v", o)
		}
		if _, ok := last(t, log).(*record.Finished); !ok {
			t.Errorf("the log ends with a %T", last(t, log))
		}
		giveBack()
	})
}

// crowdingAfter is a model that has others take the memory once it has answered much.
type crowdingAfter struct{ crowd func() }

func (m crowdingAfter) Stream(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		yield(model.Delta{Reply: say(strings.Repeat("x", 256<<10))}, nil)
		m.crowd()
	}
}

// crowded is a log that has others take the memory when it is first read.
type crowded struct {
	*runlog.Memory

	crowd func()
}

func (l *crowded) Read(ctx context.Context, run messages.Ref, after, through uint64) iter.Seq2[record.Entry, error] {
	if crowd := l.crowd; crowd != nil {
		l.crowd = nil
		crowd()
	}
	return l.Memory.Read(ctx, run, after, through)
}

// A run of another worker whose state does not fit waits for memory once, wherever its state comes from, and ends at once when it is cancelled or its
// time is over.
func TestStateThatWaitsForMemory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cached, cancel bool
		deadline       time.Duration
		want           time.Duration
		out            runner.Outcome
	}{
		"from the log":      {want: 2 * time.Minute, out: runner.Return},
		"from the cache":    {cached: true, want: 2 * time.Minute, out: runner.Return},
		"cancelled":         {cancel: true, out: runner.Done},
		"cached, cancelled": {cached: true, cancel: true, out: runner.Done},
		"late":              {deadline: time.Minute, want: time.Minute, out: runner.Done},
		"cached and late":   {cached: true, deadline: time.Minute, want: time.Minute, out: runner.Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, b := time.Now(), memorylimit.New(8<<20)
				task := messages.Task{ID: rrun.Run, Tenant: rrun.Tenant, Agent: "a", Priority: messages.PriorityNormal}
				task.Input = messages.TextInput(strings.Repeat("x", 1<<19))
				if c.deadline > 0 {
					at := began.Add(c.deadline)
					task.Deadline = &at
				}
				def := messages.Definition{Name: "a"}
				def.SetDefaults()
				mem := &runlog.Memory{}
				records := []record.Record{&record.Started{Task: task, Agent: def, QueuedAt: began}, &record.Claimed{Claim: "other", Ticket: 7, Delivery: 1}}
				first := record.Entry{Head: record.Follow(record.Head{}, records...), Records: records}
				first.Head.ID, first.Head.Time = "one", began
				seq, err := mem.Append(t.Context(), rrun, 0, first)
				if err != nil {
					t.Fatal(err)
				}
				var cache runner.Cache
				if c.cached {
					s := &agent.State{}
					if err := s.Apply(first.At(seq)); err != nil {
						t.Fatal(err)
					}
					data, err := s.Encode()
					if err != nil {
						t.Fatal(err)
					}
					cache = garbage{seq, "one", string(data)}
				}
				var giveBack func()
				log := &crowded{mem, func() { giveBack = take(t, b) }}
				r := boundedOn(t, t.TempDir(), log, cache, b, rmodel(func(context.Context, model.Request) (*model.Reply, error) {
					t.Error("the model was called")
					return say("done"), nil
				}))
				ticket := rticket(1)
				ticket.Delivered = 2
				ended := make(chan runner.Outcome, 1)
				go func() {
					o, err := r.Run(t.Context(), ticket)
					if wrong := err != nil && !errors.Is(err, runner.ErrNoMemory); wrong || (err != nil) != (c.out == runner.Return) {
						t.Errorf("%v, %v", o, err)
					}
					ended <- o
				}()
				synctest.Wait()
				if b.Stats().Waiting != 1 {
					t.Errorf("%+v", b.Stats())
				}
				if c.cancel {
					k := &runlog.Controller{Log: mem, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
					if _, err := k.Control(t.Context(), rrun, &record.CancelRequested{ID: "c"}); err != nil {
						t.Fatal(err)
					}
					r.Nudge(rrun)
				}
				if o := <-ended; o != c.out || time.Since(began) != c.want {
					t.Errorf("%v after %s; want %v after %s", o, time.Since(began), c.out, c.want)
				}
				switch end := last(t, mem).(type) {
				case *record.Finished:
					if (end.Result.Status == messages.StatusCancelled) != c.cancel || c.out != runner.Done {
						t.Errorf("the log ends with %+v", end)
					}
				case *record.Released:
					if c.out != runner.Return {
						t.Errorf("the log ends with %+v", end)
					}
				default:
					t.Errorf("the log ends with %+v", end)
				}
				giveBack()
				if got := b.Stats(); got.Used != 0 || got.Waiting != 0 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// spied is a tool that says when it is called.
type spied struct {
	tools.Tool

	called func()
}

func (s spied) Weight(c *tools.Call) int64 { return s.Tool.(tools.Weigher).Weight(c) }

func (s spied) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	s.called()
	return s.Tool.Call(ctx, c)
}

// A call that edits a file holds what the file is, waits until there is memory for that, and is made by a worker that has no more.
func TestEditHoldsWhatTheFileIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size, limit, least, most int64
		crowded                  bool
	}{
		"a small file":                   {size: 100 << 10, limit: 8 << 20, least: 3 << 20, most: 4 << 20},
		"a large file":                   {size: 6 << 20, limit: 64 << 20, least: 15 << 20, most: 16 << 20},
		"a large file, on a busy worker": {size: 6 << 20, limit: 64 << 20, least: 15 << 20, most: 16 << 20, crowded: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, all := t.TempDir(), fileTools(t)
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("old"+strings.Repeat("x", int(c.size)-3)), 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				b, log, giveBack, others, used, turns := memorylimit.New(c.limit), &runlog.Memory{}, func() {}, int64(0), int64(0), 0
				edit := spied{all["edit_file"], func() { used = b.Stats().Used - others }}
				r := boundedOn(t, dir, log, nil, b, rmodel(func(context.Context, model.Request) (*model.Reply, error) {
					if turns++; turns > 1 {
						return say("done"), nil
					}
					if c.crowded {
						giveBack = take(t, b)
					}
					call := &messages.ToolCall{ID: "c", Name: "edit_file", Arguments: `{"filePath":"a.txt","old":"old","new":"new"}`}
					return &model.Reply{Stop: messages.StopToolCalls, Message: messages.Message{Content: []messages.Block{{ToolCall: call}}}}, nil
				}), edit)
				ended := make(chan error, 1)
				go func() {
					_, err := r.Run(t.Context(), rticket(1))
					ended <- err
				}()
				if c.crowded {
					synctest.Wait()
					if b.Stats().Waiting != 1 || used != 0 {
						t.Errorf("%+v, and the call holds %d", b.Stats(), used)
					}
					giveBack()
				}
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				if used < c.least || used > c.most {
					t.Errorf("the call holds %d bytes, want %d to %d", used, c.least, c.most)
				}
				if end, ok := last(t, log).(*record.Finished); !ok || end.Result.Status != messages.StatusCompleted {
					t.Errorf("the log ends with %+v", last(t, log))
				}
			})
			if data, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || !strings.HasPrefix(string(data), "newx") {
				t.Errorf("the file was not edited: %v", err)
			}
		})
	}
}

// fileTools are the tools for files by name.
func fileTools(t *testing.T) map[string]tools.Tool {
	t.Helper()
	all, err := files.Tools()
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]tools.Tool{}
	for _, tool := range all {
		by[tool.Spec().Name] = tool
	}
	return by
}

// told is a tool whose calls say how much they hold.
type told struct{ tools.Tool }

func (told) Weight(c *tools.Call) int64 {
	var in struct {
		Bytes int64 `json:"bytes"`
	}
	_ = json.Unmarshal(c.Arguments, &in)
	return in.Bytes
}

// Of a wave as many calls are made at once as there is memory for what each of them holds, and the others after them.
func TestWaveWaitsForWhatItsCallsHold(t *testing.T) {
	t.Parallel()
	type args struct {
		Bytes int64 `json:"bytes"`
	}
	for bytes, want := range map[int64]int{1 << 20: 4, 10 << 20: 3, 15 << 20: 2, 20 << 20: 1} {
		synctest.Test(t, func(t *testing.T) {
			var calling, most, made atomic.Int64
			load, err := tools.Func(messages.ToolSpec{Name: "load", Description: "Load.", Effect: messages.EffectRead},
				func(context.Context, tools.Call, args) (tools.Result, error) {
					most.Store(max(most.Load(), calling.Add(1)))
					<-time.After(time.Second) // until all are called that are called at once
					calling.Add(-1)
					made.Add(1)
					return tools.Text("loaded"), nil
				})
			if err != nil {
				t.Fatal(err)
			}
			turns := 0
			r, log := bounded(t, memorylimit.New(64<<20), rmodel(func(context.Context, model.Request) (*model.Reply, error) {
				if turns++; turns > 1 {
					return say("done"), nil
				}
				var content []messages.Block
				for i := range 4 {
					call := &messages.ToolCall{ID: strconv.Itoa(i), Name: "load", Arguments: fmt.Sprintf(`{"bytes":%d}`, bytes)}
					content = append(content, messages.Block{ToolCall: call})
				}
				return &model.Reply{Stop: messages.StopToolCalls, Message: messages.Message{Content: content}}, nil
			}), told{load})
			if o, err := r.Run(t.Context(), rticket(1)); o != runner.Done || err != nil {
				t.Fatalf("%v, %v", o, err)
			}
			if most.Load() != int64(want) || made.Load() != 4 {
				t.Errorf("of %d calls that hold %d bytes each, %d ran at once; want %d", made.Load(), bytes, most.Load(), want)
			}
			if end, ok := last(t, log).(*record.Finished); !ok || end.Result.Status != messages.StatusCompleted {
				t.Errorf("the log ends with %+v", last(t, log))
			}
		})
	}
}
