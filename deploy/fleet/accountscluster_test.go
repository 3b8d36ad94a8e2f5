//go:build unix

package fleet_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
)

// startGuardedCluster starts three servers with the configuration of deploy/nats, and returns one as each.
func startGuardedCluster(t *testing.T) []*guarded {
	t.Helper()
	path := guardedConfig(t)
	var ports []int
	var routes []*url.URL
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var out []*guarded
	var servers []*server.Server
	for i, port := range ports {
		opts, err := server.ProcessConfigFile(path)
		if err != nil {
			t.Fatal(err)
		}
		opts.ServerName, opts.Port, opts.StoreDir, opts.NoSigs, opts.NoLog = fmt.Sprintf("n%d", i), -1, t.TempDir(), true, true
		opts.Routes, opts.Cluster = routes, server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port, PoolSize: -1}
		s, err := server.NewServer(opts)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		if !s.ReadyForConnections(patience) {
			t.Fatal("a server does not start")
		}
		servers = append(servers, s)
		out = append(out, &guarded{t: t, opts: opts, url: strings.TrimPrefix(s.ClientURL(), "nats://")})
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !slices.ContainsFunc(servers, (*server.Server).JetStreamIsLeader) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the cluster has no leader")
		}
	}
	return out
}

// Requests between accounts work whichever server of the cluster the client is connected to.
func TestAccountsInACluster(t *testing.T) {
	servers := startGuardedCluster(t)
	fleet := servers[0].connect("dispatcher")
	if err := bus.Setup(t.Context(), fleet, bus.Streams{AckWait: guardedAckWait}); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers[:2] {
		svc, err := micro.AddService(s.connect("dispatcher"), micro.Config{Name: "test", Version: "1.0.0"})
		if err != nil {
			t.Fatal(err)
		}
		answer := micro.HandlerFunc(func(r micro.Request) { _ = r.Respond([]byte(r.Subject())) })
		if err := svc.AddEndpoint("status", answer, micro.WithEndpointSubject("longshore.t.*.status")); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range servers {
		t.Run(s.opts.ServerName, func(t *testing.T) {
			nc := s.connect("acme-submitter")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			heard, err := nc.SubscribeSync("events.acme.r.>")
			if err != nil {
				t.Fatal(err)
			}
			for { // until the cluster knows who listens where
				if err := fleet.Publish("events.acme.r.step_start", []byte("{}")); err != nil {
					t.Fatal(err)
				}
				if _, err := heard.NextMsg(50 * time.Millisecond); err == nil {
					break
				}
				if ctx.Err() != nil {
					t.Fatal("no event is heard")
				}
			}
			if m, err := nc.RequestWithContext(ctx, "longshore.t.acme.status", nil); err != nil || string(m.Data) != "longshore.t.acme.status" {
				t.Errorf("a request: %v, %v", m, err)
			}
			ack, err := nc.RequestWithContext(ctx, fmt.Sprintf("tasks.low.acme.r%d", i), []byte("{}"))
			if err != nil || !strings.Contains(string(ack.Data), `"stream":"INTAKE"`) {
				t.Errorf("a task: %v, %v", ack, err)
			}
			for _, answer := range []string{"runs.acme.r.log", "$KV.QUOTAS.tenant.acme"} {
				if err := nc.PublishMsg(&nats.Msg{Subject: "tasks.low.acme.s", Reply: answer, Data: []byte("{}")}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := nc.RequestWithContext(ctx, "tasks.low.acme.t", []byte("{}")); err != nil {
				t.Error(err)
			}
		})
	}
	b, err := bus.Open(t.Context(), fleet, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for run, err := range runlogs.New(b, runlogs.Config{}).Runs(t.Context()) {
		t.Errorf("a log was written: %v, %v", run, err)
	}
	if all, err := quotas.New(b, runlogs.New(b, runlogs.Config{})).QuotaStates(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("quotas: %v, %v", all, err)
	}
}
