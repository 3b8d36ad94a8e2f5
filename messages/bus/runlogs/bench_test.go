package runlogs_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
)

func BenchmarkAppend(b *testing.B) {
	conn, _ := bustest.OpenNew(b)
	logs := bustest.Logs(conn)
	last := uint64(0)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		seq, err := logs.Append(b.Context(), bustest.Run(), last, bustest.Step(fmt.Sprintf("%026d", i), i))
		if err != nil {
			b.Fatal(err)
		}
		last = seq
	}
}

func BenchmarkEvents(b *testing.B) {
	conn, _ := bustest.OpenNew(b)
	out := bustest.Logs(conn).Open(bustest.Run())
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		out.Publish(b.Context(), uint64(i), slices.Values([]messages.Event{bustest.Event(bustest.Run(), i, messages.EventStepStart)}))
	}
	if err := out.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkSubmit(b *testing.B) {
	conn, _ := bustest.OpenNew(b)
	var n atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			run := messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", n.Add(1))}
			if dup, err := taskqueue.New(conn).Submit(b.Context(), bustest.NewTask(run), true); dup || err != nil {
				b.Errorf("got %v, %v", dup, err)
				return
			}
		}
	})
}

func BenchmarkReadLog(b *testing.B) {
	conn, _ := bustest.OpenNew(b)
	logs := bustest.Logs(conn)
	last := uint64(0)
	for i := range 30 {
		last = bustest.MustAppend(b, logs, bustest.Run(), last, bustest.Step(fmt.Sprintf("%026d", i), i))
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range logs.Read(b.Context(), bustest.Run(), 0, last) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 30 {
			b.Fatalf("got %d entries", n)
		}
	}
}
