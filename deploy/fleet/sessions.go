package fleet

import (
	"fmt"
	"log/slog"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/worker/memory"
)

// conversations caches the conversations of sessions, by session as short-term memory does states by run; nil when the
// operator works without Redis.
func conversations(s settings.Worker, keys memory.Sealer, log *slog.Logger) (_ *memory.ShortTerm, shut func() error, err error) {
	if s.RedisURL == "none" {
		return nil, func() error { return nil }, nil
	}
	rdb, err := memory.Connect(s.RedisURL)
	if err != nil {
		return nil, nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	kept, err := memory.New(rdb, memory.Config{Prefix: memory.SessionPrefix, TTL: s.MemoryTTL, Sealer: keys, Log: log})
	if err != nil {
		return nil, nil, fmt.Errorf("open memory of sessions: %w", err)
	}
	return kept, rdb.Close, nil
}
