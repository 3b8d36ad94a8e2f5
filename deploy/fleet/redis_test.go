//go:build unix

package fleet_test

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
)

// store is a Redis that the test can stop and start: the real one where it is installed, else the embedded one.
type store struct {
	url         string
	start, stop func()
}

func newStore(t *testing.T) *store {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		s := embeddedtest.Start(t, embedded.Config{NATSAddr: embedded.NoListen})
		return &store{url: s.RedisURL, stop: s.StopRedis, start: func() {
			if err := s.StartRedis(); err != nil {
				t.Error(err)
			}
		}}
	}
	port := freePort(t)
	var p *process
	s := &store{url: fmt.Sprintf("redis://127.0.0.1:%d/0", port), stop: func() { p.kill() }}
	s.start = func() {
		p = spawn(t, "redis", nil, "sh", "-c", `exec "$0" "$@" >&2`, program, "--port", strconv.Itoa(port),
			"--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
		p.line("Ready to accept connections")
	}
	s.start()
	return s
}

// freePort returns a port that is free now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// eventually polls for a condition that no event announces.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("not so: " + what)
		}
	}
}

// client is a connection of the test's own.
func (s *store) client(t *testing.T) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(s.url)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(options)
	t.Cleanup(func() { c.Close() })
	return c
}

// TestRedisIsNeverNeeded empties Redis, stops it, kills the worker meanwhile, and starts it again, while runs are in
// the middle of model calls.
func TestRedisIsNeverNeeded(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, func(c *modelCall) reply {
		r := turn(c, 5)
		r.Hold = c.Turn > 0
		return r
	})
	s := newStore(t)
	first := w.worker("first", "REDIS_URL="+s.url)
	var runs []*watching
	for i := range 4 {
		runs = append(runs, w.watch(w.submit(fmt.Sprintf("work %d", i))))
	}
	round := func(p *process, up string) []*modelCall {
		var calls []*modelCall
		for range runs {
			calls = append(calls, w.model.next(t))
		}
		if got := metrics(t, p)["longshore_memory_up"]; up != "" && got != up {
			t.Errorf("longshore_memory_up of %s is %q, want %s", p.name, got, up)
		}
		return calls
	}
	answer := func(calls []*modelCall) {
		for _, c := range calls {
			c.answer <- turn(c, 5)
		}
	}

	calls := round(first, "1") // turn 1
	if err := s.client(t).FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	answer(calls)
	calls = round(first, "1") // turn 2
	s.stop()
	runs[0].hear(1) // a worker that saved a moment ago has nothing to ask of Redis
	answer(calls)
	first.line("short-term memory is down")
	round(first, "0") // turn 3
	first.kill()
	second := w.worker("second", "REDIS_URL="+s.url)
	calls = round(second, "0") // turn 3 again, from the logs alone
	s.start()
	second.line("short-term memory is up again")
	answer(calls)
	calls = round(second, "1") // turn 4
	client := s.client(t)
	eventually(t, "the new Redis holds every state", func() bool {
		n, err := client.DBSize(t.Context()).Result()
		return err == nil && n == int64(len(runs))
	})
	answer(calls)
	for _, g := range runs {
		r := g.end()
		completed(t, r, "Done: Wrote 4 bytes to step-3.txt")
		if r.Steps != 5 {
			t.Errorf("%d steps, want 5", r.Steps)
		}
	}
	for call, n := range w.model.counts() {
		want := 1
		if call[len(call)-1] == '3' && call[len(call)-2] == ' ' {
			want = 2
		}
		if n != want {
			t.Errorf("model call %q was made %d times, want %d", call, n, want)
		}
	}
}
