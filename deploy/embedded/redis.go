package embedded

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// StartRedis starts the store again that StopRedis stopped, empty and on the same address. With NoRedis it is an
// error. It does nothing while the store runs.
func (s *Servers) StartRedis() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isStopped:
		return fmt.Errorf("start redis: %w", errStopped)
	case s.config.NoRedis:
		return errors.New("start redis: NoRedis is set")
	case s.redis != nil:
		return nil
	}
	host, _, err := splitAddr("RedisAddr", s.config.RedisAddr)
	if err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	warnIfOpen(s.config.Log, "redis", host)
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr(s.config.RedisAddr); err != nil {
		return fmt.Errorf("start redis on %s: %w", s.config.RedisAddr, err)
	}
	s.redis, s.clock = m, startClock(m)
	if s.RedisURL == "" { // never written again: others read it without the lock
		s.config.RedisAddr = m.Addr()
		s.RedisURL = "redis://" + s.config.RedisAddr + "/0"
	}
	return nil
}

// StopRedis ends the store and waits for it, as in an outage: clients are cut off and all that it held is gone.
func (s *Servers) StopRedis() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopRedis()
}

func (s *Servers) stopRedis() {
	if s.redis == nil {
		return
	}
	s.clock()
	s.redis.Close()
	s.redis = nil
}

// clockTick is how coarse the expiry of keys is. The double's own clock goes through all keys at every command, which
// is slow with thousands of them.
const clockTick = time.Second

// startClock lets keys expire, until stop is called, which waits.
func startClock(m *miniredis.Miniredis) (stop func()) {
	stopped := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(clockTick)
		defer ticker.Stop()
		last := time.Now()
		for {
			select {
			case now := <-ticker.C:
				m.FastForward(now.Sub(last))
				last = now
			case <-stopped:
				return
			}
		}
	})
	return func() {
		close(stopped)
		ticking.Wait()
	}
}
