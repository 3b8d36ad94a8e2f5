package bus_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
)

func TestConnectErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	seed := filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(seed, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		cfg  bus.ConnConfig
		want string
	}{
		{"no server there", bus.ConnConfig{URL: "nats://user:hunter2@" + closed}, "connect to NATS at nats://" + closed + ": nats: no servers available for connection (is it running?)"},
		{"token", bus.ConnConfig{URL: "hunter2@" + closed + ", nats://hunter2@" + closed}, "(is it running?)"},
		{"not a URL", bus.ConnConfig{URL: "nats://user:hunter2@host:port"}, "the NATS URL is not valid"},
		{"two ways to sign in", bus.ConnConfig{URL: closed, CredsFile: "a", NKeyFile: "b"}, "not both"},
		{"bad seed", bus.ConnConfig{URL: closed, NKeyFile: seed}, "read nkey file"},
		{"no CA", bus.ConnConfig{URL: closed, CAFile: filepath.Join(t.TempDir(), "ca.pem")}, "ca.pem"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Wait = 50 * time.Millisecond
			nc, err := bus.Connect(bustest.Context(t), tt.cfg)
			if err == nil {
				nc.Close()
				t.Fatal("got a connection")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

// plainServer is a server of its own options, without JetStream.
func plainServer(t *testing.T, opts server.Options) *server.Server {
	t.Helper()
	opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(&opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	return s
}

func TestConnectIsRefusedAtOnce(t *testing.T) {
	s := plainServer(t, server.Options{Username: "user", Password: "secret"})
	start := time.Now()
	nc, err := bus.Connect(t.Context(), bus.ConnConfig{URL: "nats://user:hunter2@" + s.Addr().String(), Wait: 5 * time.Minute})
	if err == nil {
		nc.Close()
		t.Fatal("got a connection")
	}
	if !strings.Contains(err.Error(), "(are the credentials right?)") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

func TestConnectWaitsForAServer(t *testing.T) {
	s := bustest.Start(t)
	s.StopNATS()
	got := make(chan error, 1)
	go func() {
		nc, err := bus.Connect(bustest.Context(t), bus.ConnConfig{URL: s.NATSURL, Wait: 30 * time.Second})
		if err == nil {
			nc.Close()
		}
		got <- err
	}()
	if err := s.StartNATS(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestSetupNeedsANewServer(t *testing.T) {
	nc, err := bus.Connect(bustest.Context(t), bus.ConnConfig{URL: plainServer(t, server.Options{}).ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{}); err == nil || !strings.Contains(err.Error(), "(is JetStream enabled?)") {
		t.Errorf("without JetStream: got %v", err)
	}
	if _, err := nc.Subscribe("$JS.API.INFO", func(m *nats.Msg) { // as an older server answers
		_ = m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.account_info_response","api":{"level":3}}`))
	}); err != nil {
		t.Fatal(err)
	}
	want := "the NATS server is too old: it is " + nc.ConnectedServerVersion() + " and must be 2.14 or newer"
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
