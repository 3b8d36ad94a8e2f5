package embedded

import (
	"errors"
	"fmt"

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
	m.ClockTTL(true) // without it no key would ever expire
	s.redis = m
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
	s.redis.Close()
	s.redis = nil
}
