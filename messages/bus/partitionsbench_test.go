package bus_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// divided is a cluster of three with n streams of each kind, seen from each server. Those of one kind are led by different servers, as far as there
// are enough; leads is how many lead one.
func divided(b *testing.B, n int, stream string) (buses []*bus.Bus, leads int) {
	b.Helper()
	for i, s := range startServers(b) {
		nc, err := bus.Connect(b.Context(), bus.ConnConfig{URL: s.ClientURL()})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(nc.Close)
		if i == 0 {
			if err := bus.Setup(b.Context(), nc, bus.Streams{Replicas: 3, Partitions: n}); err != nil {
				b.Fatal(err)
			}
		}
		buses = append(buses, bustest.Reopen(b, nc))
	}
	leaders := map[string]bool{}
	for i, name := range buses[0].Partitions(stream).Names() {
		leaders[lead(b, buses[0].Conn(), name, fmt.Sprintf("n%d", i%3))] = true
	}
	return buses, len(leaders)
}

// BenchmarkPartitions appends the six entries of each of N runs to logs in one to four streams of a cluster of three, so many runs at once
// for all streams together, and for each. It reports the CPU of the servers and the clients for a run, and how many servers lead.
func BenchmarkPartitions(b *testing.B) {
	for _, tc := range []struct{ streams, atOnce int }{{1, 48}, {2, 48}, {4, 48}, {2, 96}, {4, 192}, {1, 192}} {
		b.Run(fmt.Sprintf("%d streams, %d runs", tc.streams, tc.atOnce), func(b *testing.B) {
			n, atOnce := tc.streams, tc.atOnce
			buses, leads := divided(b, n, bus.StreamRuns)
			text := strings.Repeat("x", 700)
			var next atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			before := processor(b)
			for g := range atOnce {
				all.Go(func() {
					logs := bustest.Logs(buses[g%len(buses)])
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						run, last := messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)}, uint64(0)
						for step := range 6 {
							e := bustest.Step(fmt.Sprintf("%026d", step), step+1)
							e.Records = []record.Record{&record.CancelRequested{ID: "c", Reason: text}}
							var err error
							if last, err = logs.Append(b.Context(), run, last, e); err != nil {
								b.Error(err)
								return
							}
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64((processor(b)-before).Microseconds())/float64(b.N), "cpu-us/run")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
			b.ReportMetric(float64(leads), "leaders")
		})
	}
}

// BenchmarkPartitionsOfEvents stores the seventeen events of each of N runs in one to four streams of a cluster of three, which one feed reads, so
// many runs at once.
func BenchmarkPartitionsOfEvents(b *testing.B) {
	for _, tc := range []struct{ streams, atOnce int }{{1, 48}, {2, 48}, {4, 48}, {2, 96}, {4, 192}, {1, 192}} {
		b.Run(fmt.Sprintf("%d streams, %d runs", tc.streams, tc.atOnce), func(b *testing.B) {
			n, atOnce := tc.streams, tc.atOnce
			buses, leads := divided(b, n, bus.StreamEvents)
			text := json.RawMessage(`{"text":"` + strings.Repeat("x", 200) + `"}`)
			var next atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			before := processor(b)
			all.Go(func() {
				read := 0
				for f, err := range events.New(buses[0]).Feed(b.Context(), nil) {
					if err != nil {
						b.Error(err)
						return
					}
					if f.Position > 0 {
						read++
					}
					if read == 17*b.N {
						return
					}
				}
			})
			for g := range atOnce {
				all.Go(func() {
					logs := bustest.Logs(buses[g%len(buses)])
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						run := messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)}
						out := logs.Open(run)
						var told []messages.Event
						for n := range 17 {
							e := bustest.Event(run, n+1, messages.EventStepStart)
							e.Data = text
							told = append(told, e)
						}
						out.Publish(b.Context(), 1, slices.Values(told))
						if err := out.Flush(b.Context()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64((processor(b)-before).Microseconds())/float64(b.N), "cpu-us/run")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
			b.ReportMetric(float64(leads), "leaders")
		})
	}
}

// BenchmarkQueuePartitions has each of N runs submitted, taken, woken and taken again from a queue in one to four streams of a cluster of three,
// with so many at once. It reports the CPU of the servers and the clients for a run.
func BenchmarkQueuePartitions(b *testing.B) {
	for _, tc := range []struct{ streams, atOnce int }{{1, 48}, {2, 48}, {4, 48}, {1, 192}, {4, 192}} {
		b.Run(fmt.Sprintf("%d streams, %d runs", tc.streams, tc.atOnce), func(b *testing.B) {
			buses, _ := divided(b, tc.streams, bus.StreamTasks)
			for in := range tc.streams { // a lane that is new has no leader yet
				lane, ready := queue.Lane{Priority: messages.PriorityNormal, Tenant: "acme", Partition: in}, false
				for !ready && b.Context().Err() == nil {
					ready = true
					for _, own := range buses {
						for _, err := range bustest.Tasks(b, own).Take(b.Context(), lane, 1) {
							ready = ready && err == nil
						}
					}
				}
			}
			var next atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			before := processor(b)
			for g := range tc.atOnce {
				all.Go(func() {
					own := buses[g%len(buses)]
					tq, tasks := taskqueue.New(own), bustest.Tasks(b, own)
					take := func(l queue.Lane) error { // one message of the lane, of whichever run
						for b.Context().Err() == nil {
							for d, err := range tasks.Take(b.Context(), l, 1) {
								if err == nil {
									err = d.Ack(b.Context())
								}
								return err
							}
						}
						return b.Context().Err()
					}
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						run := messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)}
						_, err := tq.Submit(b.Context(), bustest.NewTask(run), true)
						if err == nil {
							err = take(bustest.LaneOf(own, run, messages.PriorityNormal))
						}
						if err == nil {
							err = tq.Wake(b.Context(), run, 7)
						}
						if err == nil {
							err = take(bustest.LaneOf(own, run, messages.PriorityWake))
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64((processor(b)-before).Microseconds())/float64(b.N), "cpu-us/run")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
		})
	}
}

// processor is the CPU time that this process has used.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// lead has a server lead a stream if the cluster lets it within some tries, and returns which one does.
func lead(b *testing.B, nc *nats.Conn, stream, server string) string {
	b.Helper()
	leader := ""
	for n := range 400 {
		var info struct {
			Cluster struct {
				Leader string `json:"leader"`
			} `json:"cluster"`
		}
		m, err := nc.Request(bus.APIPrefix+"STREAM.INFO."+stream, nil, 5*time.Second)
		if err == nil {
			err = json.Unmarshal(m.Data, &info)
		}
		if leader = info.Cluster.Leader; err == nil && leader == server {
			return leader
		}
		if n%100 == 0 {
			move := []byte(`{"placement":{"preferred":"` + server + `"}}`)
			_, _ = nc.Request(bus.APIPrefix+"STREAM.LEADER.STEPDOWN."+stream, move, 5*time.Second) // the next look says what came of it
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-b.Context().Done():
		}
	}
	return leader
}
