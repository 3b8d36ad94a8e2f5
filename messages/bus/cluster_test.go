package bus_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/runlog/runlogtest"
)

// startCluster starts three servers that replicate, and returns their client URLs.
func startCluster(t *testing.T) string {
	t.Helper()
	var urls []string
	for _, s := range startServers(t) {
		urls = append(urls, s.ClientURL())
	}
	return strings.Join(urls, ",")
}

// startServers starts three servers that replicate.
func startServers(tb testing.TB) []*server.Server {
	tb.Helper()
	var listeners [3]net.Listener
	var routes []*url.URL
	for i := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		listeners[i] = l
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
	}
	var servers []*server.Server
	for i, l := range listeners {
		addr := l.Addr().(*net.TCPAddr)
		if err := l.Close(); err != nil {
			tb.Fatal(err)
		}
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
			JetStream: true, StoreDir: tb.TempDir(), Routes: routes, NoSublistCache: true, // as deploy/nats has it
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: addr.Port, PoolSize: -1},
		})
		if err != nil {
			tb.Fatal(err)
		}
		s.Start()
		tb.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		if !s.ReadyForConnections(10 * time.Second) {
			tb.Fatal("a server does not start")
		}
		servers = append(servers, s)
	}
	for !slices.ContainsFunc(servers, (*server.Server).JetStreamIsLeader) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-bustest.Context(tb).Done():
			tb.Fatal("the cluster has no leader")
		}
	}
	return servers
}

// A replicated log is one too, although replicas lag, and a leader that steps down costs nothing that was acked: with the logs in one
// stream and in four.
func TestBusIsALogOnACluster(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 4} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			testLogOnACluster(t, n)
		})
	}
}

func testLogOnACluster(t *testing.T, partitions int) {
	t.Helper()
	urls := startCluster(t)
	nc, err := bus.Connect(bustest.Context(t), bus.ConnConfig{URL: urls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Replicas: 3, Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(bustest.Context(t), nc, bus.Config{Answer: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("conformance", func(t *testing.T) {
		runlogtest.Run(t, func(*testing.T) runlog.Log { return bustest.Logs(b) })
	})
	t.Run("a read right after an append", func(t *testing.T) {
		run := messages.Ref{Tenant: "acme", Run: "lag"}
		var readers []*bus.Bus
		for u := range strings.SplitSeq(urls, ",") { // each is answered by the replica it is connected to
			nc, err := bus.Connect(bustest.Context(t), bus.ConnConfig{URL: u})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(nc.Close)
			reader, err := bus.Open(bustest.Context(t), nc, bus.Config{})
			if err != nil {
				t.Fatal(err)
			}
			readers = append(readers, reader)
		}
		ctx, stop := context.WithCancel(bustest.Context(t))
		var others sync.WaitGroup
		for i := range 4 { // so that the replicas have something to lag behind with
			others.Go(func() {
				large := bustest.Step("large", 1)
				large.Records = []record.Record{&record.CancelRequested{ID: "c", Reason: strings.Repeat("x", 50<<10)}}
				for last := uint64(0); ctx.Err() == nil; {
					last, _ = bustest.Logs(b).Append(ctx, messages.Ref{Tenant: "acme", Run: fmt.Sprintf("other-%d", i)}, last, large)
				}
			})
		}
		defer others.Wait()
		defer stop()
		last := uint64(0)
		for i := range 150 {
			last = bustest.MustAppend(t, bustest.Logs(b), run, last, bustest.Step(strconv.Itoa(i), i+1))
			for n, reader := range readers {
				var got uint64
				for e := range bustest.Values(t, bustest.Logs(reader).Read(bustest.Context(t), run, last-1, last)) {
					got = e.Seq
				}
				if got != last {
					t.Fatalf("reader %d through %d: got %d", n, last, got)
				}
			}
		}
	})
	t.Run("leaders step down", func(t *testing.T) {
		run := messages.Ref{Tenant: "acme", Run: "steps"}
		var want []string
		last := uint64(0)
		out := bustest.Logs(b).Open(run)
		for i := range 100 {
			id := fmt.Sprintf("%03d", i)
			last = bustest.MustAppend(t, bustest.Logs(b), run, last, bustest.Step(id, i+1))
			want = append(want, id)
			out.Publish(bustest.Context(t), last, slices.Values(bustest.Events(run, i+1, i+1)))
			if i%33 == 20 {
				for _, stream := range []string{bustest.LogIn(b, run), bustest.EventsIn(b, run)} {
					if _, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, 5*time.Second); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if err := out.Finish(bustest.Context(t), bustest.Event(run, 101, messages.EventRunFinished)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, bustest.IDs(t, b, run)); diff != "" {
			t.Errorf("acked, stored:\n%s", diff)
		}
		var seen []uint64
		for _, e := range bustest.Watched(t, b, run, time.Minute) {
			seen = append(seen, e.Number())
		}
		if diff := cmp.Diff(bustest.Numbers(1, 101), seen); diff != "" {
			t.Errorf("watched:\n%s", diff)
		}
	})
	t.Run("submit", func(t *testing.T) {
		for i, want := range []bool{false, true} {
			if dup, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(bustest.Run()), false); dup != want || err != nil {
				t.Errorf("submit %d: got %v, %v, want %v", i, dup, err, want)
			}
		}
		d := bustest.Pull(t, b, 1)[0]
		if err := taskqueue.New(b).Wake(bustest.Context(t), bustest.Run(), 5); err != nil {
			t.Fatal(err)
		}
		if err := d.Ack(bustest.Context(t)); err != nil {
			t.Fatal(err)
		}
		if got := bustest.Pull(t, b, 1)[0]; got.Seq == d.Seq {
			t.Error("the wake-up is gone")
		}
	})
	t.Run("intake", func(t *testing.T) {
		ctx, stop := context.WithCancel(bustest.Context(t))
		var taking sync.WaitGroup
		for range 2 { // as two dispatchers do
			taking.Go(func() {
				if err := taskqueue.New(b).Intake(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		defer taking.Wait()
		defer stop()
		for i := range 100 {
			id := fmt.Sprintf("r%d", i)
			bustest.Hand(t, nc, "intake.high.taken."+id, "{}", nats.Header{"Nats-Msg-Id": {"taken." + id}}) // it may publish it again
			if i == 30 || i == 60 {
				stream := map[int]string{30: bus.StreamTasks, 60: bus.StreamIntake}[i]
				if _, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, 5*time.Second); err != nil {
					t.Fatal(err)
				}
			}
		}
		runs := map[string]int{}
		for len(runs) < 100 {
			d := bustest.Pull(t, b, 1)[0]
			if _, run, _ := messages.ParseTaskSubject(d.Subject); run.Tenant == "taken" {
				runs[run.Run]++
			}
			if err := d.Ack(bustest.Context(t)); err != nil {
				t.Fatal(err)
			}
		}
		for run, n := range runs {
			if n != 1 {
				t.Errorf("%s came %d times", run, n)
			}
		}
	})
}
