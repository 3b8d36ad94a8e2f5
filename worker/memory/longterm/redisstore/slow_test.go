package redisstore_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/longtermtest"
	"github.com/longshore-run/longshore/worker/memory/longterm/redisstore"
)

// delayed is a way to a server on which each answer takes a while, which may change at any time.
func delayed(t *testing.T, server string, delay *atomic.Int64) (addr string) {
	t.Helper()
	return embeddedtest.Relay(t, server, func(ctx context.Context) func([]byte) bool {
		return func([]byte) bool {
			select {
			case <-time.After(time.Duration(delay.Load())):
				return true
			case <-ctx.Done():
				return false
			}
		}
	})
}

// A slow Redis is waited for up to the timeout, and no longer; an answer that comes too late is never taken for that of another call.
func TestSlow(t *testing.T) {
	servers := map[string]string{"miniredis": embeddedtest.Start(t, embedded.Config{NATSAddr: embedded.NoListen}).RedisURL}
	if program, err := exec.LookPath("redis-server"); err == nil {
		servers["redis"] = "redis://" + start(t, program)
	} else {
		t.Log("no redis-server on the PATH: it was left out")
	}
	for name, url := range servers {
		t.Run(name, func(t *testing.T) {
			const timeout = 3 * time.Second
			var delay atomic.Int64
			host, _, _ := strings.Cut(strings.TrimPrefix(url, "redis://"), "/")
			s := redisstore.New(connect(t, "redis://"+delayed(t, host, &delay)), redisstore.Config{Timeout: timeout})
			at := longtermtest.Place("c")
			read := func(id string) (string, error) {
				items, err := s.Read(t.Context(), at, []string{id})
				if err != nil || len(items) != 1 {
					return "", err
				}
				return items[0].Text, nil
			}
			delay.Store(int64(20 * time.Millisecond))
			for _, id := range []string{"a", "b"} {
				if err := s.Write(t.Context(), at, []longterm.Item{{ID: id, Text: "the text of " + id}}); err != nil {
					t.Fatal(err)
				}
			}
			if text, err := read("a"); err != nil || text != "the text of a" {
				t.Errorf("a little slow: %q, %v", text, err)
			}
			delay.Store(int64(time.Hour))
			began := time.Now()
			if _, err := read("a"); !errors.Is(err, longterm.ErrUnavailable) || time.Since(began) > 10*timeout {
				t.Errorf("far too slow: %v after %v", err, time.Since(began))
			}
			if err := s.Write(t.Context(), at, []longterm.Item{{ID: "c"}}); !errors.Is(err, longterm.ErrUnavailable) {
				t.Errorf("far too slow: %v", err)
			}
			delay.Store(0)
			for range 10 {
				for _, id := range []string{"a", "b"} {
					if text, err := read(id); err != nil || text != "the text of "+id {
						t.Errorf("quick again: %q, %v", text, err)
					}
				}
			}
		})
	}
}

// A Redis that comes back is used with the next call.
func TestAwayAndBack(t *testing.T) {
	servers := embeddedtest.Start(t, embedded.Config{NATSAddr: embedded.NoListen})
	s, at := redisstore.New(connect(t, servers.RedisURL), redisstore.Config{Timeout: patience}), longtermtest.Place("c")
	if err := s.Write(t.Context(), at, []longterm.Item{{ID: "a", Text: "anchor"}}); err != nil {
		t.Fatal(err)
	}
	servers.StopRedis()
	if err := s.Write(t.Context(), at, []longterm.Item{{ID: "b"}}); !errors.Is(err, longterm.ErrUnavailable) {
		t.Errorf("away: %v", err)
	}
	if err := servers.StartRedis(); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), at, []longterm.Item{{ID: "b", Text: "anchor"}}); err != nil {
		t.Errorf("back: %v", err)
	}
	if found, err := s.Search(t.Context(), at, longterm.Search{Text: "anchor"}); err != nil || len(found.Hits) == 0 {
		t.Errorf("back: %+v, %v", found, err)
	}
}
