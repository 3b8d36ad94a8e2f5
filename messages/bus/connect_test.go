package bus_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
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
		{"nobody there", bus.ConnConfig{URL: "nats://user:hunter2@" + closed}, "connect to NATS at nats://" + closed + ": nats: no servers available for connection (is it running?)"},
		{"token", bus.ConnConfig{URL: "hunter2@" + closed + ", nats://hunter2@" + closed}, "(is it running?)"},
		{"not a URL", bus.ConnConfig{URL: "nats://user:hunter2@host:port"}, "the NATS URL is not valid"},
		{"two ways to sign in", bus.ConnConfig{URL: closed, CredsFile: "a", NKeyFile: "b"}, "not both"},
		{"bad seed", bus.ConnConfig{URL: closed, NKeyFile: seed}, "read nkey file"},
		{"no CA", bus.ConnConfig{URL: closed, CAFile: filepath.Join(t.TempDir(), "ca.pem")}, "ca.pem"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Wait = 50 * time.Millisecond
			nc, err := bus.Connect(ctxFor(t), tt.cfg)
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
