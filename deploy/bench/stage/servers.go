package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/embedded"
)

// ServersConfig is the setup of the servers' process.
type ServersConfig struct {
	Dir      string `json:"dir"`
	Replicas int    `json:"replicas"` // how many NATS servers there are, in one cluster. Default 1
	Profile  string `json:"profile,omitempty"`
}

// ServersReady is its answer.
type ServersReady struct {
	NATSURL  string `json:"natsUrl"`
	RedisURL string `json:"redisUrl"`
	Redis    string `json:"redis"` // which it is
}

// serversRole runs NATS, in a cluster all of its servers, and Redis: the real one as a child, or else the embedded double.
type serversRole struct {
	env     Env
	servers []*embedded.Servers
	redis   *redisServer
	profile func() error
}

func (s *serversRole) Setup(ctx context.Context, args json.RawMessage) (any, error) {
	var cfg ServersConfig
	if err := json.Unmarshal(args, &cfg); err != nil {
		return nil, fmt.Errorf("read setup: %w", err)
	}
	var err error
	if s.redis, err = startRedis(ctx, filepath.Join(cfg.Dir, "redis")); err != nil {
		return nil, err
	}
	if err := s.startAll(ctx, cfg); err != nil {
		return nil, err
	}
	if s.profile, err = measure.Profile(cfg.Profile); err != nil {
		return nil, err
	}
	urls := make([]string, len(s.servers))
	for i, own := range s.servers {
		urls[i] = own.NATSURL
	}
	ready := ServersReady{strings.Join(urls, ","), s.servers[0].RedisURL, "miniredis (no redis-server in the PATH)"}
	if s.redis != nil {
		ready.RedisURL, ready.Redis = s.redis.url, s.redis.version
	}
	return ready, nil
}

// startAll starts the NATS servers, the first of them with the double of Redis if there is no real one.
func (s *serversRole) startAll(ctx context.Context, cfg ServersConfig) error {
	own := embedded.Config{Dir: cfg.Dir, NoRedis: s.redis != nil, Log: s.env.Log}
	if s.env.keyset() != "" {
		own.Key = storeKey
	}
	var routes []string
	if cfg.Replicas > 1 {
		var err error
		if routes, err = freeAddrs(ctx, cfg.Replicas); err != nil {
			return err
		}
	}
	for i := range max(1, cfg.Replicas) {
		if len(routes) > 0 {
			name := "n" + strconv.Itoa(i)
			own.Dir, own.NoRedis = filepath.Join(cfg.Dir, name), own.NoRedis || i > 0
			own.Log = nil // what they say while they find each other is no news
			own.Cluster = &embedded.Cluster{Name: name, Addr: routes[i], Routes: routes}
		}
		started, err := embedded.Start(ctx, own)
		if err != nil {
			return err
		}
		s.servers = append(s.servers, started)
	}
	return nil
}

// freeAddrs are addresses of this machine that nothing listens on.
func freeAddrs(ctx context.Context, n int) ([]string, error) {
	addrs := make([]string, n)
	for i := range addrs {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = l.Close() }() // all at once, so that each is another
		addrs[i] = l.Addr().String()
	}
	return addrs, nil
}

func (*serversRole) Start(context.Context) error { return nil }

func (s *serversRole) Usage(ctx context.Context) (measure.Usage, error) {
	u, err := measure.OwnUsage()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	u.LiveBytes = live[0].Value.Uint64()
	if err != nil || s.redis == nil {
		return u, err
	}
	u.RedisSeconds, err = s.redis.cpuSeconds(ctx)
	return u, err
}

func (s *serversRole) Stop() error {
	var errs []error
	if s.profile != nil {
		errs = append(errs, s.profile())
	}
	for _, own := range s.servers {
		errs = append(errs, own.Stop())
	}
	if s.redis != nil {
		errs = append(errs, s.redis.stop())
	}
	return errors.Join(errs...)
}
