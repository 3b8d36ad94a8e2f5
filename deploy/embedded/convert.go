package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// removeTimeout bounds the removal of the streams that cannot be converted.
const removeTimeout = 30 * time.Second

// clearStreams are the names of the streams whose files are not encrypted, and will be when a server with a key opens them.
func clearStreams(dir string) (names []string, err error) {
	found, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "meta.inf"))
	if err != nil {
		return nil, fmt.Errorf("look for streams: %w", err)
	}
	for _, meta := range found {
		folder := filepath.Dir(meta)
		switch _, err := os.Stat(filepath.Join(folder, "meta.key")); {
		case errors.Is(err, fs.ErrNotExist):
			names = append(names, filepath.Base(folder))
		case err != nil:
			return nil, fmt.Errorf("look for the key of stream %s: %w", filepath.Base(folder), err)
		}
	}
	return names, nil
}

// removeUnused removes those of the streams that never had a message: nats-server 2.15 converts them so that their first message is
// acknowledged and not found by its subject, or loses them at the next start. They are made anew by those who need them.
func (s *Servers) removeUnused(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	nc, err := s.Conn()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("open JetStream: %w", err)
	}
	for _, name := range names {
		stream, err := js.Stream(ctx, name)
		if err == nil && stream.CachedInfo().State.LastSeq == 0 {
			err = js.DeleteStream(ctx, name)
		}
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("convert stream %s: %w", name, err)
		}
	}
	return nil
}
