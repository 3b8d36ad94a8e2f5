package dispatcher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/observability/index"
)

// index runs an index of runs until the test ends.
func (y *yard) index() *index.Index {
	y.t.Helper()
	x, err := index.New(index.Config{Bus: y.bus, Where: filepath.Join(y.t.TempDir(), "index.db")})
	if err != nil {
		y.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	y.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			y.t.Error(err)
		}
		if err := x.Close(); err != nil {
			y.t.Error(err)
		}
	})
	return x
}

// estimate is what a dry run says about the cost of lines.
func (y *yard) estimate(text string) dispatcher.BatchCost {
	y.t.Helper()
	s := spec("dry")
	s.Estimate = true
	check, err := y.client.Batches().Check(y.t.Context(), s, read(text))
	if err != nil || check.Invalid > 0 || check.Cost == nil {
		y.t.Fatalf("%+v, %v", check, err)
	}
	return *check.Cost
}

// of are lines of an agent.
func of(agent string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"%s-%d","input":"x","agent":%q}`+"\n", agent, i, agent)
	}
	return b.String()
}

func (y *yard) apply(agent string) {
	y.t.Helper()
	if _, _, err := catalog.New(y.bus).PutAgent(y.t.Context(), messages.Definition{Name: agent}); err != nil {
		y.t.Fatal(err)
	}
}

func TestBatchEstimate(t *testing.T) {
	y := newYard(t)
	y.dispatcherWith(y.index())
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte(priceFile), 0o600); err != nil {
		t.Fatal(err)
	}
	y.worker(prices)
	y.apply("idle")
	y.apply("broken")
	past := file(5, "go") + `{"custom_id":"f","input":"fail","agent":"broken"}`
	if _, err := y.client.Batches().Submit(t.Context(), spec("past"), read(past)); err != nil {
		t.Fatal(err)
	}
	if b := y.ended(dispatcher.BatchOf("past")); b.Counts.Completed != 5 || b.Counts.Failed != 1 {
		t.Fatalf("%+v", b)
	}
	for name, tc := range map[string]struct {
		lines string
		want  dispatcher.BatchCost
	}{
		"all priced":       {file(10, "x"), dispatcher.BatchCost{USD: new(0.002), Lines: 10, Runs: 5}},
		"none":             {of("idle", 2), dispatcher.BatchCost{Unknown: "no past runs of agent idle with a price"}},
		"failed runs only": {of("broken", 2), dispatcher.BatchCost{Unknown: "no past runs of agent broken with a price"}},
		"some": {file(10, "x") + of("idle", 2) + of("broken", 1), dispatcher.BatchCost{
			USD: new(0.002), Lines: 10, Runs: 5, Unknown: "no past runs of 2 agents with a price, such as idle",
		}},
	} {
		if diff := cmp.Diff(tc.want, y.estimate(tc.lines)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	s := spec("dry")
	if check, err := y.client.Batches().Check(t.Context(), s, read(file(1, "x"))); err != nil || check.Cost != nil {
		t.Errorf("an estimate that was not asked for: %+v, %v", check, err)
	}
	s.Estimate = true
	if check, err := y.client.Batches().Check(t.Context(), s, read("")); err != nil || check.Cost != nil {
		t.Errorf("an estimate of nothing: %+v, %v", check, err)
	}
}

func TestBatchEstimateWithoutAnIndex(t *testing.T) {
	y := newYard(t)
	want := dispatcher.BatchCost{Unknown: "no dispatcher answers"}
	if diff := cmp.Diff(want, y.estimate(file(1, "x"))); diff != "" {
		t.Errorf("without a dispatcher: %s", diff)
	}
	y.dispatcher()
	want.Unknown = "this dispatcher keeps no index of runs (LONGSHORE_INDEX)"
	if diff := cmp.Diff(want, y.estimate(file(1, "x"))); diff != "" {
		t.Errorf("without an index: %s", diff)
	}
}

// A file that names more agents than are looked at makes no more requests than that; its largest agents come first.
func TestBatchEstimateOfManyAgents(t *testing.T) {
	y := newYard(t)
	const agents = 2000
	var text strings.Builder
	for i := range agents {
		agent := fmt.Sprintf("a%d", i)
		y.apply(agent)
		text.WriteString(of(agent, 1))
	}
	y.apply("large")
	asked := y.answerRuns(func(req control.RunsRequest) []control.RunSummary {
		return []control.RunSummary{{Tenant: "default", ID: "r", Agent: req.Agent, Status: messages.StatusCompleted, Cost: new(0.5)}}
	})
	// large is the first of the file, so that it is among those that are counted
	got := y.estimate(of("large", 3) + text.String())
	want := dispatcher.BatchCost{USD: new(513.0), Lines: 1026, Runs: 1024, Unknown: "only 1024 agents are looked at"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	names := asked()
	if len(names) != 1024 || names[0] != "large" {
		t.Errorf("%d requests, the first about %s", len(names), names[0])
	}
	slices.Sort(names)
	if n := len(slices.Compact(names)); n != 1024 {
		t.Errorf("about %d agents", n)
	}
}

// answerRuns answers as a dispatcher of any version might, until the test ends; with nil it says nothing. The agents that
// were asked about are in the order of the requests.
func (y *yard) answerRuns(with func(control.RunsRequest) []control.RunSummary) (agents func() []string) {
	y.t.Helper()
	var mu sync.Mutex
	var asked []string
	sub, err := y.nc.Subscribe(control.SubjectRuns, func(m *nats.Msg) {
		var req control.RunsRequest
		if err := json.Unmarshal(m.Data, &req); err != nil {
			y.t.Error(err)
		}
		mu.Lock()
		asked = append(asked, req.Agent)
		mu.Unlock()
		runs := with(req)
		if runs == nil {
			return
		}
		body, err := json.Marshal(control.RunPage{Runs: runs})
		if err != nil {
			y.t.Error(err)
		}
		if err := m.Respond(body); err != nil {
			y.t.Error(err)
		}
	})
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { _ = sub.Unsubscribe() })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(asked)
	}
}

// Costs that cannot be do not count, and neither do more runs than were asked for.
func TestBatchEstimateOfStrangeCosts(t *testing.T) {
	y := newYard(t)
	y.answerRuns(func(req control.RunsRequest) []control.RunSummary {
		if req.Limit != 100 || len(req.Statuses) != 1 || req.Statuses[0] != messages.StatusCompleted || req.Tenant != "default" {
			t.Errorf("%+v", req)
		}
		runs := []control.RunSummary{{Cost: new(-1.0)}, {Cost: new(1e308)}, {}}
		for range 97 {
			runs = append(runs, control.RunSummary{Cost: new(2.0)})
		}
		return append(runs, control.RunSummary{Cost: new(1000.0)})
	})
	want := dispatcher.BatchCost{USD: new(20.0), Lines: 10, Runs: 97}
	if diff := cmp.Diff(want, y.estimate(file(10, "x"))); diff != "" {
		t.Error(diff)
	}
}

// A user of NATS who may not ask gets no answer: the dry run ends all the same.
func TestBatchEstimateWithoutAnAnswer(t *testing.T) {
	t.Parallel() // it waits as long as a request may take
	y := newYard(t)
	y.apply("other")
	asked := y.answerRuns(func(control.RunsRequest) []control.RunSummary { return nil })
	got := y.estimate(file(3, "x") + of("other", 1))
	if got.USD != nil || !strings.Contains(got.Unknown, "a user of NATS needs the right to publish longshore.runs") || len(asked()) != 1 {
		t.Errorf("%+v after %d requests", got, len(asked()))
	}
}
