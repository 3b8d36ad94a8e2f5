package bus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
)

// again tries until it works: for as long as a cluster has no leader, requests fail.
func again(t *testing.T, what string, try func() error) {
	t.Helper()
	ctx := bustest.Context(t)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// Lanes on three servers are on all of them. When the one that leads is lost, what was queued is given, what was acked is
// not given again, and a new tenant gets a lane.
func TestLanesOnAClusterThatLosesAServer(t *testing.T) {
	t.Parallel()
	servers := startServers(t)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.ClientURL())
	}
	nc, err := bus.Connect(bustest.Context(t), bus.ConnConfig{URL: strings.Join(urls, ",")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Replicas: 3, AckWait: 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(bustest.Context(t), nc, bus.Config{Answer: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	tasks := bustest.Tasks(t, b)
	left, acked := map[string]bool{}, map[string]bool{}
	submit := func(tenant string, n int) {
		for i := range n {
			run := messages.Ref{Tenant: tenant, Run: fmt.Sprintf("%s-%d", tenant, i)}
			again(t, "submit", func() error {
				_, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(run), true)
				return err
			})
			left[run.Run] = true
		}
	}
	// take works up to n tasks of a tenant, and reports whether there were some.
	take := func(tenant string, n int) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for d, err := range tasks.Take(ctx, queue.Lane{Priority: messages.PriorityNormal, Tenant: tenant}, n) {
			if err != nil {
				return err
			}
			run := d.Subject[strings.LastIndexByte(d.Subject, '.')+1:]
			if acked[run] {
				t.Errorf("%s was acked, and comes again", run)
			}
			if err := d.Ack(ctx); err == nil {
				acked[run] = true
			}
			delete(left, run) // an ack without an answer may have counted
		}
		return nil
	}
	tenants := []string{"acme", "harbour", "quay"}
	for _, tenant := range tenants {
		submit(tenant, 5)
		again(t, "take", func() error { return take(tenant, 2) })
	}
	if len(acked) < 3 {
		t.Errorf("worked %v", acked)
	}
	js, leader := bustest.NewJetStream(t, nc), ""
	for _, tenant := range tenants {
		again(t, "the lane of "+tenant, func() error {
			c, err := js.Consumer(bustest.Context(t), bus.StreamTasks, "lane_normal_"+tenant)
			if err != nil {
				return err
			}
			group := c.CachedInfo().Cluster
			if group == nil || group.Leader == "" || len(group.Replicas) != 2 {
				return fmt.Errorf("it is on %+v", group)
			}
			leader = group.Leader
			return nil
		})
	}
	lose(t, servers, leader)
	submit("late", 3) // a lane that is made by two servers
	ctx := bustest.Context(t)
	for len(left) > 0 && ctx.Err() == nil {
		for _, tenant := range append(tenants, "late") {
			_ = take(tenant, 5) // the next round tries again
		}
	}
	if len(left) > 0 {
		t.Errorf("never given: %v", left)
	}
	again(t, "list lanes", func() error {
		lanes, err := b.Lanes(bustest.Context(t))
		if err == nil && len(lanes) != len(tenants)+2 { // the new tenant's, and that of wake-ups
			err = fmt.Errorf("got %+v", lanes)
		}
		return err
	})
}

// lose kills the server of a name.
func lose(t *testing.T, servers []*server.Server, name string) {
	t.Helper()
	for _, s := range servers {
		if s.Name() == name {
			s.Shutdown()
			s.WaitForShutdown()
			return
		}
	}
	t.Fatalf("no server is called %q", name)
}
