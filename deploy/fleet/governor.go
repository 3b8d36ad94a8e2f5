package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/governor"
	"github.com/longshore-run/longshore/worker/model/replycache"
	"github.com/longshore-run/longshore/worker/policy"
)

// guard stands before the endpoints of a worker: the reply cache, and behind it the fleet's governor. A nil guard lets
// everything through.
type guard struct {
	governor *governor.Governor // nil: no limits
	cache    *replycache.Cache  // nil: no cache
	rdb      redis.UniversalClient
	leaves   []interface{ Close() } // idle connections of providers; they outlive the calls

	sealer  lateSealer // of the cache
	retries retries
	caps    atomic.Pointer[quotas.Caps] // that say which providers are paused; nil: none
}

// limitsOf are those of each model of each endpoint: what its provider says, else what holds for all; nil when there are
// none.
func limitsOf(s settings.Models) func(provider, model string) governor.Limits {
	all := governor.Limits{RPM: s.ModelRPM, TPM: s.ModelTPM, InFlight: s.ModelInFlight}
	byName, said := map[string]governor.Limits{}, all != governor.Limits{}
	for _, p := range s.Providers() {
		l := governor.Limits{
			RPM: cmp.Or(p.Limits.RequestsPerMinute, all.RPM), TPM: cmp.Or(p.Limits.TokensPerMinute, all.TPM),
			InFlight:  cmp.Or(p.Limits.InFlight, all.InFlight),
			TenantRPM: p.Limits.Tenant.RequestsPerMinute, TenantTPM: p.Limits.Tenant.TokensPerMinute,
			TenantInFlight: p.Limits.Tenant.InFlight,
		}
		byName[p.Name] = l
		said = said || l != governor.Limits{}
	}
	if !said {
		return nil
	}
	return func(provider, _ string) governor.Limits {
		if l, ok := byName[provider]; ok {
			return l
		}
		return all
	}
}

// newGuard does not connect yet. The caller closes the guard.
func newGuard(s settings.Worker, limits func(provider, model string) governor.Limits, redact *policy.Redactor, log *slog.Logger) (_ *guard, err error) {
	g := &guard{}
	if s.RedisURL != "none" && (limits != nil || s.ReplyCacheTTL > 0) {
		if g.rdb, err = memory.Connect(s.RedisURL); err != nil {
			return nil, fmt.Errorf("REDIS_URL: %w", err)
		}
	}
	if limits != nil {
		g.governor, err = governor.New(governor.Config{Redis: g.rdb, Limits: limits, Worker: s.Name, Log: log})
	}
	if err == nil && g.rdb != nil && s.ReplyCacheTTL > 0 {
		g.cache, err = replycache.New(replycache.Config{
			Redis: g.rdb, TTL: s.ReplyCacheTTL, Redact: redact.String, Sealer: &g.sealer, Log: log,
		})
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// wrap puts the guard before the endpoint of that name, and closes its idle connections at the end.
func (g *guard) wrap(endpoint string, p model.Provider) model.Provider {
	if g == nil {
		return p
	}
	if leaf, ok := p.(interface{ Close() }); ok {
		g.leaves = append(g.leaves, leaf)
	}
	if g.governor != nil {
		p = g.governor.Wrap(endpoint, p)
	}
	if g.cache != nil {
		p = g.cache.Wrap(endpoint, p)
	}
	return p
}

// run blocks until ctx ends.
func (g *guard) run(ctx context.Context) error {
	if g == nil || g.governor == nil {
		return nil
	}
	return g.governor.Run(ctx)
}

func (g *guard) close() error {
	if g == nil {
		return nil
	}
	for _, leaf := range g.leaves {
		leaf.Close()
	}
	if g.rdb == nil {
		return nil
	}
	return g.rdb.Close()
}

// metrics are those of what the guard has.
func (g *guard) metrics(m *observability.Metrics) error {
	var errs []error
	count := func(name, help string, f func() float64) { errs = append(errs, m.Counter(name, help, f)) }
	gauge := func(name, help string, f func() float64) { errs = append(errs, m.Gauge(name, help, f)) }
	if g != nil {
		errs = append(errs, m.CountersBy("model_retries_total", "Model calls that failed and were retried, by code.", "code", g.retries.all))
	}
	if g != nil && g.governor != nil {
		s := g.governor.Stats
		count("governor_admitted_total", "Model calls that the fleet's own limits admitted.", func() float64 { return float64(s().Admitted) })
		count("governor_waits_total", "Admitted model calls that waited for their turn.", func() float64 { return float64(s().Waited) })
		count("governor_wait_seconds_total", "Time that model calls waited for their turn.", func() float64 { return s().Waiting.Seconds() })
		count("governor_refused_total", "Model calls that would have waited too long.", func() float64 { return float64(s().Refused) })
		count("governor_errors_total", "Failures of Redis that the governor saw.", func() float64 { return float64(s().Errors) })
		gauge("governor_workers", "Workers that share the limits, as seen last.", func() float64 { return float64(s().Workers) })
		gauge("governor_degraded", "Whether Redis is unavailable and this worker applies its share of the limits.", func() float64 {
			if s().Degraded {
				return 1
			}
			return 0
		})
	}
	if g != nil && g.cache != nil {
		s := g.cache.Stats
		count("reply_cache_hits_total", "Model calls answered by the reply cache.", func() float64 { return float64(s().Hits) })
		count("reply_cache_misses_total", "Model calls that the reply cache could not answer.", func() float64 { return float64(s().Misses) })
		count("reply_cache_stores_total", "Replies written to the reply cache.", func() float64 { return float64(s().Stores) })
		count("reply_cache_errors_total", "Failures of the reply cache.", func() float64 { return float64(s().Errors) })
	}
	return errors.Join(errs...)
}
