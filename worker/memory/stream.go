package memory

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Bounds of the streams of a run.
const (
	MaxStreams = 64       // per run
	MaxEntries = 256      // per stream; older ones go
	MaxEntry   = 64 << 10 // bytes
)

// errStreams says that a run has MaxStreams already.
var errStreams = fmt.Errorf("run has %d streams already", MaxStreams)

// Append adds an entry at the end of a stream of the run and waits for Redis. On an error it may have been added all
// the same. The stream's name is a token as strict.ValidToken wants it.
func (s *ShortTerm) Append(ctx context.Context, run messages.Ref, stream string, entry []byte) error {
	err := checkStream(run, stream)
	if err == nil && len(entry) > MaxEntry {
		err = &messages.FieldError{Field: "entry", Reason: fmt.Sprintf("must be at most %d bytes", MaxEntry)}
	}
	if err == nil {
		entry, err = s.config.Sealer.Seal(ctx, run.Tenant, entry, s.streamPlace(run, stream))
	}
	if err == nil {
		err = s.do(ctx, func(ctx context.Context) error {
			keys := []string{s.streamKey(run, stream), s.indexKey(run)}
			ok, err := appendScript.Run(ctx, s.rdb, keys, stream, entry, -MaxEntries, s.config.TTL.Milliseconds(), MaxStreams).Bool()
			if err == nil && !ok {
				return errStreams
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("append to short-term memory: %w", err)
	}
	return nil
}

// Read returns the last entries of a stream of the run, oldest first: at most limit, and all that are kept with a
// limit of 0. A stream that is unknown, expired or lost is empty.
func (s *ShortTerm) Read(ctx context.Context, run messages.Ref, stream string, limit int) ([][]byte, error) {
	err := checkStream(run, stream)
	if err == nil && limit < 0 {
		err = &messages.FieldError{Field: "limit", Reason: "must not be negative"}
	}
	var entries [][]byte
	if err == nil {
		err = s.do(ctx, func(ctx context.Context) error {
			// From -0 is from the first.
			texts, err := s.rdb.LRange(ctx, s.streamKey(run, stream), int64(-limit), -1).Result()
			for _, text := range texts {
				entries = append(entries, []byte(text))
			}
			return err
		})
	}
	for i := range entries {
		if err == nil {
			entries[i], err = s.config.Sealer.Open(ctx, run.Tenant, entries[i], s.streamPlace(run, stream))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read short-term memory: %w", err)
	}
	return entries, nil
}

// Clear removes a stream of the run and waits for Redis.
func (s *ShortTerm) Clear(ctx context.Context, run messages.Ref, stream string) error {
	err := checkStream(run, stream)
	if err == nil {
		err = s.do(ctx, func(ctx context.Context) error {
			pipe := s.rdb.TxPipeline()
			pipe.Del(ctx, s.streamKey(run, stream))
			pipe.SRem(ctx, s.indexKey(run), stream)
			_, err := pipe.Exec(ctx)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("clear short-term memory: %w", err)
	}
	return nil
}

func checkStream(run messages.Ref, stream string) error {
	if err := run.Check(); err != nil {
		return err
	}
	if !strict.ValidToken(stream) {
		return &messages.FieldError{Field: "stream", Reason: "must be 1 to 64 characters of A-Z a-z 0-9 _ -"}
	}
	return nil
}
