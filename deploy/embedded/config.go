package embedded

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"
)

// NoListen as Config.NATSAddr opens no port: only Servers.Conn reaches the server.
const NoListen = "-"

const (
	defaultAddr       = "127.0.0.1:0"
	defaultMaxPayload = 2 << 20
	maxMaxPayload     = 64 << 20 // the server's limit on what may be pending for one client
)

// Config chooses where the servers listen and keep their data. The zero value is good for a test.
type Config struct {
	// Dir holds the JetStream store in its folder "jetstream", which only the user may read. It is made if it is
	// missing, and one Servers at a time may use it. Empty: a fresh temporary folder that Stop removes.
	Dir string
	// NATSAddr is host:port; port 0 picks a free one. NoListen opens no port. Default 127.0.0.1:0.
	NATSAddr string
	// RedisAddr is host:port; port 0 picks a free one. Default 127.0.0.1:0.
	RedisAddr string
	// NoRedis leaves the Redis-compatible store out.
	NoRedis bool
	// SyncInterval is how often JetStream calls fsync, so how much a loss of power may take. Default 1 s, and a
	// minute under the race detector.
	SyncInterval time.Duration
	// SyncAlways calls fsync before each acknowledgement. About ten times slower with many publishers.
	SyncAlways bool
	// MaxPayload is the size limit of a message in bytes. Default 2 MiB, at most 64 MiB.
	MaxPayload int
	// Key encrypts the files of the JetStream store. A store that was in the clear is encrypted when it is opened; one that is
	// encrypted must be opened with its key. Default: in the clear.
	Key string
	// Cluster has the NATS server replicate with others. Default: it stands alone.
	Cluster *Cluster
	// Log gets the NATS server's warnings and errors. Default: they are discarded.
	Log *slog.Logger
}

// Cluster is the part of a NATS server in a cluster. Start does not wait for the others.
type Cluster struct {
	Name   string   // of this server. The others have different ones
	Addr   string   // host:port for the others
	Routes []string // host:port of each server; its own may be among them
}

// withDefaults returns the checked Config with every field set but Dir.
func (c Config) withDefaults() (Config, error) {
	if c.NATSAddr == "" {
		c.NATSAddr = defaultAddr
	}
	if c.RedisAddr == "" {
		c.RedisAddr = defaultAddr
	}
	if c.SyncInterval == 0 {
		c.SyncInterval = defaultSyncInterval
	}
	if c.MaxPayload == 0 {
		c.MaxPayload = defaultMaxPayload
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, c.check()
}

func (c Config) check() error {
	if c.NATSAddr != NoListen {
		if _, _, err := splitAddr("NATSAddr", c.NATSAddr); err != nil {
			return err
		}
	}
	if _, _, err := splitAddr("RedisAddr", c.RedisAddr); err != nil {
		return err
	}
	if c.SyncInterval < 0 {
		return fmt.Errorf("SyncInterval: %s is negative", c.SyncInterval)
	}
	if c.MaxPayload < 0 || c.MaxPayload > maxMaxPayload {
		return fmt.Errorf("MaxPayload: %d is not within 1 and %d", c.MaxPayload, maxMaxPayload)
	}
	return nil
}

// splitAddr wants a host, because an empty one would listen on every interface without a password.
func splitAddr(field, addr string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w", field, err)
	}
	if host == "" {
		return "", 0, fmt.Errorf("%s: %q has no host (127.0.0.1 is this machine alone)", field, addr)
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%s: %q is not a port", field, p)
	}
	return host, int(n), nil
}
