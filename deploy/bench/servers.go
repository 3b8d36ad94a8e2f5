package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/longshore-run/longshore/deploy/embedded"
)

// serversConfig is the setup of the servers' process, serversReady its answer.
type (
	serversConfig struct {
		Dir     string `json:"dir"`
		Profile string `json:"profile,omitempty"`
	}
	serversReady struct {
		NATSURL  string `json:"natsUrl"`
		RedisURL string `json:"redisUrl"`
		Redis    string `json:"redis"` // which it is
	}
)

// serversRole runs NATS, and Redis: the real one as a child, or else the embedded double.
type serversRole struct {
	log     *slog.Logger
	servers *embedded.Servers
	redis   *redisServer
	profile func() error
}

func (s *serversRole) setup(ctx context.Context, args json.RawMessage) (any, error) {
	var cfg serversConfig
	if err := json.Unmarshal(args, &cfg); err != nil {
		return nil, fmt.Errorf("read setup: %w", err)
	}
	var err error
	if s.redis, err = startRedis(ctx, filepath.Join(cfg.Dir, "redis")); err != nil {
		return nil, err
	}
	own := embedded.Config{Dir: cfg.Dir, NoRedis: s.redis != nil, Log: s.log}
	if keysetText() != "" {
		own.Key = storeKey
	}
	s.servers, err = embedded.Start(ctx, own)
	if err != nil {
		return nil, err
	}
	if s.profile, err = profile(cfg.Profile); err != nil {
		return nil, err
	}
	if s.redis != nil {
		return serversReady{s.servers.NATSURL, s.redis.url, s.redis.version}, nil
	}
	return serversReady{s.servers.NATSURL, s.servers.RedisURL, "miniredis (no redis-server in the PATH)"}, nil
}

func (*serversRole) start(context.Context) error { return nil }

func (s *serversRole) usage(ctx context.Context) (usage, error) {
	u, err := ownUsage()
	if err != nil || s.redis == nil {
		return u, err
	}
	u.RedisSeconds, err = s.redis.cpuSeconds(ctx)
	return u, err
}

func (s *serversRole) stop() error {
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
