package embedded

import (
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// readyTimeout bounds the wait for a server whose Start has already returned; it is there at once.
const readyTimeout = 5 * time.Second

// anyPort is the server's word for a port that the system picks.
const anyPort = -1

// clusterName is that of each cluster: which servers are in one is what their routes say.
const clusterName = "embedded"

// StartNATS starts the server again that StopNATS stopped, on the same address and with the same streams.
// It does nothing while the server runs.
func (s *Servers) StartNATS() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isStopped {
		return fmt.Errorf("start nats: %w", errStopped)
	}
	if s.nats != nil {
		return nil
	}
	opts, err := s.natsOptions()
	if err != nil {
		return fmt.Errorf("start nats: %w", err)
	}
	ns, err := runNATS(opts, newServerLog(s.config.Log))
	if err != nil {
		return fmt.Errorf("start nats on %s: %w", s.config.NATSAddr, err)
	}
	s.nats = ns
	if s.config.NATSAddr != NoListen && s.NATSURL == "" { // never written again: others read it without the lock
		s.config.NATSAddr = ns.Addr().String()
		s.NATSURL = "nats://" + s.config.NATSAddr
	}
	return nil
}

// StopNATS ends the server and waits for it, as in an outage: clients are cut off, acknowledged messages are kept.
func (s *Servers) StopNATS() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopNATS()
}

func (s *Servers) stopNATS() {
	if s.nats == nil {
		return
	}
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	s.nats = nil
}

func (s *Servers) natsOptions() (*server.Options, error) {
	opts := &server.Options{
		ServerName:   "embedded",
		JetStream:    true,
		StoreDir:     s.store.dir,
		SyncInterval: s.config.SyncInterval,
		SyncAlways:   s.config.SyncAlways,
		MaxPayload:   int32(s.config.MaxPayload),
		// A default of 1000 consumers per stream is too small for a fleet's viewers; streams may still say less.
		JetStreamLimits: server.JSLimitOpts{DefaultMaxConsumers: -1},
		NoSublistCache:  true, // each run has subjects of its own, so it is filled in vain
		NoSigs:          true,
		NoLog:           true,
		DontListen:      s.config.NATSAddr == NoListen,
	}
	if s.config.Key != "" {
		opts.JetStreamKey, opts.JetStreamCipher = s.config.Key, server.AES
	}
	if c := s.config.Cluster; c != nil {
		host, port, err := splitAddr("Cluster.Addr", c.Addr)
		if err != nil {
			return nil, err
		}
		opts.ServerName, opts.Cluster = c.Name, server.ClusterOpts{Name: clusterName, Host: host, Port: port}
		for _, addr := range c.Routes {
			opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", Host: addr})
		}
	}
	if opts.DontListen {
		return opts, nil
	}
	host, port, err := splitAddr("NATSAddr", s.config.NATSAddr)
	if err != nil {
		return nil, err
	}
	warnIfOpen(s.config.Log, "nats", host)
	opts.Host, opts.Port = host, port
	if port == 0 {
		opts.Port = anyPort
	}
	return opts, nil
}

// runNATS starts a server. The server reports a failed start only in its log.
func runNATS(opts *server.Options, log *serverLog) (*server.Server, error) {
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, err
	}
	ns.SetLoggerV2(log, false, false, false)
	ns.Start()
	err = log.fatal()
	if err == nil && !ns.ReadyForConnections(readyTimeout) {
		err = fmt.Errorf("not ready within %s", readyTimeout)
	}
	if err != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
		return nil, err
	}
	return ns, nil
}

// isLoopback reports whether host is this machine alone.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
