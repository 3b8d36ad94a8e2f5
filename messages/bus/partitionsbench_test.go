package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// cluster is three servers with n streams of each kind, and a client of each. The streams of the kind that is measured are led by different servers,
// as far as there are enough.
type cluster struct {
	servers []*server.Server
	buses   []*bus.Bus
	leads   int     // servers that lead a stream of the kind
	idle    float64 // CPU of servers and clients with nothing to do, as a share of a core
	runs    atomic.Int64
}

func newCluster(b *testing.B, n int, stream string) *cluster {
	b.Helper()
	c := &cluster{servers: startServers(b)}
	for i, s := range c.servers {
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
		c.buses = append(c.buses, bustest.Reopen(b, nc))
	}
	leaders := map[string]bool{}
	for i, name := range c.buses[0].Partitions(stream).Names() {
		leaders[lead(b, c.buses[0].Conn(), name, fmt.Sprintf("n%d", i%3))] = true
	}
	c.leads = len(leaders)
	return c
}

// appended is how many entries all replicated logs of a server have: each of them has been written by three servers, and answered by two.
func (c *cluster) appended() (n uint64) {
	for _, groups := range *c.servers[0].Raftz(&server.RaftzOptions{AccountFilter: server.DEFAULT_GLOBAL_ACCOUNT}) {
		for _, g := range groups {
			n += g.PIndex
		}
	}
	return n
}

// load is how much work there is at a time, in all streams together.
type load struct {
	atOnce int // runs at once
	rate   int // runs begun in a second; 0: as soon as another one ends
}

func (l load) String() string {
	if l.rate > 0 {
		return fmt.Sprintf("%d a second", l.rate)
	}
	return fmt.Sprintf("%d at once", l.atOnce)
}

// idleFor is how long an idle cluster is measured.
const idleFor = 3 * time.Second

// rest measures what the cluster uses with nothing to do.
func (c *cluster) rest(b *testing.B) {
	b.Helper()
	before := processor(b)
	<-time.After(idleFor)
	c.idle = (processor(b) - before).Seconds() / idleFor.Seconds()
}

// loads are what so many streams are measured with. A fleet takes several because the leader of one is full, so what compares with one stream is as
// much for each: so many runs at once, or so many begun in a second. With the first the cores are full, and messages that wait for a core are replicated
// together; with the second, far below what the cores can do, they are not.
func loads(streams, rate int) []load {
	return slices.Compact([]load{{atOnce: 48}, {atOnce: 48 * streams}, {atOnce: 192}, {atOnce: 192, rate: rate * streams}})
}

// work is what a benchmark has done with a cluster.
type work struct {
	stream  string                                    // the kind of streams that it is about
	rate    int                                       // runs begun in a second, for each stream
	prepare func(b *testing.B, c *cluster)            // before what is measured; nil: nothing
	run     func(own *bus.Bus, id messages.Ref) error // does one run, with one of the buses
	follow  func(ctx context.Context, runs int)       // returns when it has seen so many runs; nil: nothing looks at them
}

// byTurns measures work with one, two and four streams by turns, three times, or with -short once with one and four.
func (w work) byTurns(b *testing.B) {
	b.Helper()
	rounds, divided := 3, []int{1, 2, 4}
	if testing.Short() {
		rounds, divided = 1, []int{1, 4}
	}
	for round := range rounds {
		for _, streams := range divided {
			b.Run(fmt.Sprintf("round %d, %d streams", round+1, streams), func(b *testing.B) {
				c := newCluster(b, streams, w.stream)
				if w.prepare != nil {
					w.prepare(b, c)
				}
				c.rest(b)
				for _, l := range loads(streams, w.rate) {
					b.Run(l.String(), func(b *testing.B) { w.measure(b, c, l) })
				}
			})
		}
	}
}

// measure reports the CPU of the servers and the clients for a run, without what they use idle; how many entries of replicated logs a run took, each of
// which may have several messages; and how many servers lead.
func (w work) measure(b *testing.B, c *cluster, l load) {
	b.Helper()
	var all sync.WaitGroup
	begin := make(chan struct{})
	b.ResetTimer()
	start, before, appended := time.Now(), processor(b), c.appended()
	for g := range l.atOnce {
		all.Go(func() {
			for range begin {
				id := messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", c.runs.Add(1))}
				if err := w.run(c.buses[g%len(c.buses)], id); err != nil {
					b.Error(err)
				}
			}
		})
	}
	if w.follow != nil {
		all.Go(func() { w.follow(b.Context(), b.N) })
	}
	for n := range b.N {
		if l.rate > 0 {
			<-time.After(time.Until(start.Add(time.Duration(n) * time.Second / time.Duration(l.rate))))
		}
		begin <- struct{}{}
	}
	close(begin)
	all.Wait()
	used := (processor(b) - before).Seconds() - c.idle*b.Elapsed().Seconds()
	b.ReportMetric(used*1e6/float64(b.N), "cpu-us/run")
	b.ReportMetric(c.idle*100, "idle-%")
	b.ReportMetric(float64(c.appended()-appended)/float64(b.N), "appends/run")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(float64(c.leads), "leaders")
}

// BenchmarkPartitions appends the six entries of each of N runs to logs.
func BenchmarkPartitions(b *testing.B) {
	text := strings.Repeat("x", 700)
	work{stream: bus.StreamRuns, rate: 20, run: func(own *bus.Bus, id messages.Ref) (err error) {
		logs, last := bustest.Logs(own), uint64(0)
		for step := range 6 {
			e := bustest.Step(fmt.Sprintf("%026d", step), step+1)
			e.Records = []record.Record{&record.CancelRequested{ID: "c", Reason: text}}
			if last, err = logs.Append(b.Context(), id, last, e); err != nil {
				return err
			}
		}
		return nil
	}}.byTurns(b)
}

// BenchmarkPartitionsOfEvents stores the seventeen events of each of N runs, which one feed reads.
func BenchmarkPartitionsOfEvents(b *testing.B) {
	text := json.RawMessage(`{"text":"` + strings.Repeat("x", 200) + `"}`)
	const perRun = 17
	var fed chan struct{}
	work{
		stream: bus.StreamEvents, rate: 20,
		prepare: func(b *testing.B, c *cluster) {
			b.Helper()
			read := make(chan struct{}, 1024)
			fed = read
			var feed sync.WaitGroup
			b.Cleanup(feed.Wait) // before the servers end
			feed.Go(func() {
				for f, err := range events.New(c.buses[0]).Feed(b.Context(), nil) {
					switch {
					case b.Context().Err() != nil:
						return
					case err != nil:
						b.Error(err)
						return
					case f.Position > 0:
						select {
						case read <- struct{}{}:
						case <-b.Context().Done():
						}
					}
				}
			})
		},
		run: func(own *bus.Bus, id messages.Ref) error {
			out := bustest.Logs(own).Open(id)
			told := make([]messages.Event, perRun)
			for n := range told {
				told[n] = bustest.Event(id, n+1, messages.EventStepStart)
				told[n].Data = text
			}
			out.Publish(b.Context(), 1, slices.Values(told))
			return out.Flush(b.Context())
		},
		follow: func(ctx context.Context, runs int) {
			for range perRun * runs {
				select {
				case <-fed:
				case <-ctx.Done():
				}
			}
		},
	}.byTurns(b)
}

// BenchmarkQueuePartitions has each of N runs submitted, taken, acknowledged, woken, taken and acknowledged.
func BenchmarkQueuePartitions(b *testing.B) {
	var tasks map[*bus.Bus]*taskqueue.Tasks
	take := func(own *bus.Bus, l queue.Lane) error { // one message of the lane, of whichever run
		for {
			d, err := tasks[own].Await(b.Context(), l, time.Second)
			if err != nil {
				return err
			}
			if d != nil {
				return d.Ack(b.Context())
			}
		}
	}
	work{
		stream: bus.StreamTasks, rate: 20,
		prepare: func(b *testing.B, c *cluster) {
			b.Helper()
			tasks = map[*bus.Bus]*taskqueue.Tasks{}
			for _, own := range c.buses {
				tasks[own] = bustest.Tasks(b, own)
			}
			for in := range c.buses[0].Partitions(bus.StreamTasks).Number() { // a lane that is new has no leader yet
				lane, ready := queue.Lane{Priority: messages.PriorityNormal, Tenant: "acme", Partition: in}, false
				for !ready && b.Context().Err() == nil {
					ready = true
					for _, t := range tasks {
						for _, err := range t.Take(b.Context(), lane, 1) {
							ready = ready && err == nil
						}
					}
				}
			}
		},
		run: func(own *bus.Bus, id messages.Ref) error {
			tq := taskqueue.New(own)
			if _, err := tq.Submit(b.Context(), bustest.NewTask(id), true); err != nil {
				return err
			}
			if err := take(own, bustest.LaneOf(own, id, messages.PriorityNormal)); err != nil {
				return err
			}
			if err := tq.Wake(b.Context(), id, 7); err != nil {
				return err
			}
			return take(own, bustest.LaneOf(own, id, messages.PriorityWake))
		},
	}.byTurns(b)
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
