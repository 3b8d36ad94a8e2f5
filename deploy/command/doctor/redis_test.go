package doctor_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/deploy/command/doctor"
)

func TestRedis(t *testing.T) {
	locked := miniredis.RunT(t)
	locked.RequireAuth(planted)
	named := miniredis.RunT(t)
	named.RequireUserAuth("worker", planted)
	for name, tt := range map[string]struct {
		url    string
		status doctor.Status
		text   string
	}{
		"none":             {"none", doctor.OK, "folded from their logs"},
		"missing":          {"", doctor.Skip, "REDIS_URL is missing"},
		"open":             {"redis://" + miniredis.RunT(t).Addr(), doctor.OK, "away"},
		"its password":     {"redis://:" + planted + "@" + locked.Addr(), doctor.OK, "away"},
		"its user":         {"redis://worker:" + planted + "@" + named.Addr(), doctor.OK, "away"},
		"no password":      {"redis://" + locked.Addr(), doctor.Fail, "it requires a password"},
		"another password": {"redis://:" + planted + "x@" + locked.Addr(), doctor.Fail, "refuses this password"},
		"down":             {"redis://:" + planted + "@" + closedPort(t), doctor.Fail, "nothing listens there"},
		"nonsense":         {"redis://" + listen(t, "220 mail.example.com ESMTP\r\n"), doctor.Fail, "does not answer as Redis does"},
		"an odd address":   {"redis://:" + planted + "@host:port", doctor.Fail, "correct REDIS_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := examine(t, []string{"REDIS_URL=" + tt.url, "LONGSHORE_SCRIPT=" + file(t, script)}, "--role", "worker")
			if err == nil { // there is no NATS
				t.Error("healthy")
			}
			r.expect(t, "redis", tt.status, tt.text)
		})
	}
}

// The output of INFO comes from a real Redis, if one is installed.
func TestRedisServer(t *testing.T) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Log("no redis-server on the PATH: left out")
		return
	}
	address := closedPort(t)
	_, port, _ := cut(address)
	cmd := exec.CommandContext(t.Context(), program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--requirepass", planted,
		"--maxmemory", "100mb", "--maxmemory-policy", "noeviction")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	rdb := redis.NewClient(&redis.Options{Addr: address, Password: planted})
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); rdb.Ping(ctx).Err() != nil; <-tick.C {
		if ctx.Err() != nil {
			t.Fatal("redis-server does not answer")
		}
	}
	environ := []string{"REDIS_URL=redis://:" + planted + "@" + address, "LONGSHORE_SCRIPT=" + file(t, script)}
	for name, tt := range map[string]struct {
		set    [2]string
		status doctor.Status
		text   string
	}{
		"full":      {[2]string{"maxmemory-policy", "noeviction"}, doctor.Warn, "once it is full, writes fail"},
		"evicts":    {[2]string{"maxmemory-policy", "allkeys-lru"}, doctor.OK, "allkeys-lru"},
		"unlimited": {[2]string{"maxmemory", "0"}, doctor.Warn, "no memory limit"},
	} {
		if err := rdb.ConfigSet(ctx, "maxmemory", "104857600").Err(); err != nil {
			t.Fatal(err)
		}
		if err := rdb.ConfigSet(ctx, tt.set[0], tt.set[1]).Err(); err != nil {
			t.Fatal(err)
		}
		r, _ := examine(t, environ)
		if len(r.of("redis eviction")) != 1 {
			t.Errorf("%s: %+v", name, r.Checks)
		}
		r.expect(t, "redis eviction", tt.status, tt.text)
	}
	if err := rdb.Do(ctx, "ACL", "SETUSER", "weak", "on", ">"+planted, "~other:*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	r, _ := examine(t, []string{"REDIS_URL=redis://weak:" + planted + "@" + address, environ[1]})
	r.expect(t, "redis", doctor.Fail, "lacks permissions")
}
