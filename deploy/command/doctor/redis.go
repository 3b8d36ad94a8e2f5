package doctor

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/worker/memory"
)

// slowCache is the round trip from which on a cache counts as slow.
const slowCache = 20 * time.Millisecond

// probeKey is read, as workers read states, to see whether they may. Nothing has this name.
const probeKey = "longshore:{_._}:doctor"

// cache looks at Redis.
func (d *doctor) cache(ctx context.Context) []Finding {
	const check = "redis"
	at := d.env.worker.RedisURL
	switch {
	case d.env.role != roleWorker:
		return []Finding{skip(check, "", "only workers use it")}
	case at == "":
		return []Finding{skip(check, "set REDIS_URL to its address, or to none", "REDIS_URL is missing")}
	case at == "none":
		return []Finding{ok(check, "none, as REDIS_URL says: runs that move to another worker are folded from their logs")}
	}
	redis.SetLogger(quiet{})
	rdb, err := memory.Connect(at)
	if err != nil {
		return []Finding{fail(check, "correct REDIS_URL: redis://:password@host:6379, rediss:// for TLS, redis+sentinel:// for Sentinel", "%v", err)}
	}
	defer func() { _ = rdb.Close() }() // nothing is left in it
	ctx, cancel := d.within(ctx)
	defer cancel()
	if err := rdb.Get(ctx, probeKey).Err(); err != nil && !errors.Is(err, redis.Nil) { // and opens the connection
		return []Finding{cacheFailure(err)}
	}
	began := time.Now()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return []Finding{cacheFailure(err)}
	}
	took := time.Since(began)
	info, err := rdb.Info(ctx, "server", "memory").Result()
	if err != nil {
		if info, err = rdb.Info(ctx).Result(); err != nil {
			info = ""
		}
	}
	return d.cacheFound(infoFields(info), took)
}

// cacheFound judges the output of Redis' INFO command.
func (d *doctor) cacheFound(info map[string]string, took time.Duration) []Finding {
	const check = "redis"
	version := info["redis_version"]
	if version == "" {
		version = "unknown version"
	}
	out := []Finding{ok(check, "%s, %s away", version, short(took))}
	if took > slowCache {
		out[0] = warn(check, "run workers near Redis, or see what makes it slow", "%s away", short(took))
	}
	policy, most := info["maxmemory_policy"], info["maxmemory"]
	const advice = "set maxmemory and maxmemory-policy allkeys-lru in redis.conf: what is evicted is folded from the logs"
	switch {
	case policy == "":
		return append(out, skip("redis eviction", advice, "the server does not show it"))
	case most == "0" || most == "":
		return append(out, warn("redis eviction", advice, "it has no memory limit: it grows until the machine runs out of memory"))
	case policy == "noeviction":
		return append(out, warn("redis eviction", advice, "%s: once it is full, writes fail", policy))
	default:
		return append(out, ok("redis eviction", "%s", policy))
	}
}

// cacheFailure says why Redis does not answer.
func cacheFailure(err error) Finding {
	const check = "redis"
	const goesOn = "; runs continue without it, but more slowly"
	switch text := err.Error(); {
	case strings.HasPrefix(text, "NOAUTH"):
		return fail(check, "put its password into REDIS_URL: redis://:password@host:6379", "it requires a password"+goesOn)
	case strings.HasPrefix(text, "WRONGPASS"), strings.Contains(text, "invalid password"), strings.Contains(text, "invalid username-password"):
		return fail(check, "correct user and password in REDIS_URL", "it refuses this password"+goesOn)
	case strings.HasPrefix(text, "NOPERM"):
		return fail(check, "give the user ~longshore:* and the commands of strings, scripts and streams (ACL SETUSER)", "its user lacks permissions that workers need%s", goesOn)
	case strings.HasPrefix(text, "LOADING"):
		return warn(check, "wait until it has read its data", "it is starting")
	case errors.Is(err, io.EOF), strings.Contains(text, "can't parse"), strings.Contains(text, "redis:"):
		return fail(check, "check that REDIS_URL is the address of a Redis, and its scheme (rediss for TLS)", "the server there does not answer as Redis does: %v", err)
	default:
		return fail(check, "start it, or correct REDIS_URL, or work without (REDIS_URL=none)", "%s%s", network(err), goesOn)
	}
}

// infoFields are the fields of an answer to INFO.
func infoFields(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			out[name] = value
		}
	}
	return out
}

// quiet discards what the Redis client would print: its errors are reported.
type quiet struct{}

// Printf implements the client's logger.
func (quiet) Printf(context.Context, string, ...any) {}
