package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/worker"
)

// inPartition are n new runs of a tenant that are all in one of four partitions.
func inPartition(tenant string, partition, n int) []messages.Ref {
	var runs []messages.Ref
	for i := 0; len(runs) < n; i++ {
		if run := (messages.Ref{Tenant: tenant, Run: fmt.Sprintf("run-%d", i)}); bus.PartitionOf(run, 4) == partition {
			runs = append(runs, run)
		}
	}
	return runs
}

// put publishes gated tasks in a partition, whether or not they belong there.
func (h *house) put(partition int, runs ...messages.Ref) {
	h.t.Helper()
	js, err := jetstream.New(h.nc)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, run := range runs {
		m := &nats.Msg{Subject: h.bus.Partitions(bus.StreamTasks).SubjectIn(partition, run.TaskSubject(messages.PriorityNormal)), Data: []byte(`{"input":"go","agent":"gated"}`)}
		if _, err := js.PublishMsg(h.t.Context(), m); err != nil {
			h.t.Fatal(err)
		}
	}
}

// A worker has tickets of all partitions in hand, whose sequences are the same, and keeps, settles and hands back each as that of its run.
func TestTicketsOfSeveralPartitions(t *testing.T) {
	const each = 8
	h := openWith(t, bus.Streams{AckWait: 2 * time.Second, Partitions: 4}, gatedAgent())
	for in := range 4 {
		h.put(in, inPartition("acme", in, each)...)
	}
	g := newGate(t)
	_, stop := h.worker("first", script(t, gated), worker.Config{Slots: 4 * each, DrainTimeout: time.Millisecond}, g)
	g.await(t, 4*each)
	beats := make(chan string, 1000)
	for _, name := range h.bus.Partitions(bus.StreamTasks).Names() {
		if _, err := h.nc.Subscribe("$JS.ACK."+name+".>", func(m *nats.Msg) {
			if string(m.Data) == "+WPI" {
				beats <- strings.Split(m.Subject, ".")[2]
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	kept := map[string]int{}
	for range 8 * each { // two rounds, so longer than a third of the ack wait
		select {
		case name := <-beats:
			kept[name]++
		case <-time.After(patience):
			t.Fatalf("kept: %v", kept)
		}
	}
	if len(kept) != 4 {
		t.Errorf("kept: %v", kept)
	}
	second := newGate(t)
	second.slow = func(messages.Ref) bool { return false }
	h.worker("second", script(t, gated), worker.Config{Slots: 4 * each}, second)
	if n := len(g.order()); n != 4*each {
		t.Errorf("%d runs have begun", n)
	}
	stop()
	second.await(t, 4*each) // handed back, in all partitions
	h.empty()
	ended := map[messages.Ref]bool{}
	for _, run := range second.order() {
		ended[run] = true
	}
	if len(ended) != 4*each {
		t.Errorf("%d runs were continued", len(ended))
	}
}

// A tenant with tasks in all partitions has no more turns than one whose tasks are in one.
func TestFairnessOverPartitions(t *testing.T) {
	h := openWith(t, bus.Streams{AckWait: 30 * time.Second, Partitions: 4}, gatedAgent())
	for in := range 4 {
		h.put(in, inPartition(busy, in, 100)...)
	}
	h.put(2, inPartition(quiet, 2, 100)...)
	g := newGate(t)
	g.slow = func(messages.Ref) bool { return false }
	h.worker("w", script(t, gated), worker.Config{Slots: 4}, g)
	g.await(t, 500)
	h.empty()
	counts := map[string]int{}
	for _, run := range g.order()[:100] {
		counts[run.Tenant]++
	}
	if counts[quiet] < 40 || counts[busy] < 40 {
		t.Errorf("of the first hundred: %v", counts)
	}
}

// What stands in a wrong partition is no task of its run: it is in the dead letters, and the run is worked where it belongs.
func TestATaskInTheWrongPartition(t *testing.T) {
	h := openWith(t, bus.Streams{AckWait: 30 * time.Second, Partitions: 4}, gatedAgent())
	run := inPartition("acme", 1, 1)[0]
	g := newGate(t)
	g.slow = func(messages.Ref) bool { return false }
	h.worker("w", script(t, gated), worker.Config{Slots: 4}, g)
	h.put(3, run)
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if d := h.letter(ctx, js, run.TaskSubject(messages.PriorityNormal)); !strings.Contains(d.Error.Message, "another partition") {
		t.Errorf("the letter: %+v", d.Error)
	}
	if _, ok, err := bustest.Logs(h.bus).Last(ctx, run); ok || err != nil {
		t.Errorf("the run has a log: %v, %v", ok, err)
	}
	h.put(1, run)
	g.await(t, 1)
	h.empty()
}
