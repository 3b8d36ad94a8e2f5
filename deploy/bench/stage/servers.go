package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/metrics"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/embedded"
)

// ServersConfig is the setup of the servers' process.
type ServersConfig struct {
	Dir     string `json:"dir"`
	Profile string `json:"profile,omitempty"`
}

// ServersReady is its answer.
type ServersReady struct {
	NATSURL  string `json:"natsUrl"`
	RedisURL string `json:"redisUrl"`
	Redis    string `json:"redis"` // which it is
}

// serversRole runs NATS, and Redis: the real one as a child, or else the embedded double.
type serversRole struct {
	env     Env
	servers *embedded.Servers
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
	own := embedded.Config{Dir: cfg.Dir, NoRedis: s.redis != nil, Log: s.env.Log}
	if s.env.keyset() != "" {
		own.Key = storeKey
	}
	s.servers, err = embedded.Start(ctx, own)
	if err != nil {
		return nil, err
	}
	if s.profile, err = measure.Profile(cfg.Profile); err != nil {
		return nil, err
	}
	if s.redis != nil {
		return ServersReady{s.servers.NATSURL, s.redis.url, s.redis.version}, nil
	}
	return ServersReady{s.servers.NATSURL, s.servers.RedisURL, "miniredis (no redis-server in the PATH)"}, nil
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
	if s.servers != nil {
		errs = append(errs, s.servers.Stop())
	}
	if s.redis != nil {
		errs = append(errs, s.redis.stop())
	}
	return errors.Join(errs...)
}
