package snapshot

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-run/longshore/messages/manifest"
)

// Cache knows the hashes of files that have not changed since a scan. The zero value knows none. For one goroutine.
type Cache struct{ files map[string]known }

// known is what was seen of a file.
type known struct {
	stamp stamp
	at    time.Time // before its content was read
	hash  string
}

// stamp changes with the content of a file, unless it was changed twice within the clock tick of the file system.
type stamp struct {
	inode, size    uint64
	modified, meta int64 // in ns
	mode           uint32
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{st.Ino, uint64(st.Size), st.Mtim.Nano(), st.Ctim.Nano(), uint32(st.Mode)} //nolint:unconvert // they have other types on other systems
}

// How old a change must have been when the content was read. Times are those of a clock that ticks every few milliseconds; some file
// systems keep whole seconds, or every other one.
const (
	tick       = 50 * time.Millisecond
	coarseTick = 2 * time.Second
)

// holds reports whether the file is the one that was read. One that had changed right before may have changed right after.
func (k *known) holds(st *unix.Stat_t) bool {
	if k.stamp != stampOf(st) {
		return false
	}
	newest, apart := max(k.stamp.modified, k.stamp.meta), tick
	if k.stamp.modified%int64(time.Second) == 0 && k.stamp.meta%int64(time.Second) == 0 {
		apart = coarseTick
	}
	return k.at.UnixNano()-newest > int64(apart)
}

// learn fills the cache with what a folder holds that no one else writes to, and which must be what the manifest says.
func (c *Cache) learn(ctx context.Context, dir *os.File, m *manifest.Manifest, l Limits) error {
	now := time.Now()
	s := &scanner{ctx: ctx, limits: l.withDefaults(), seen: make(map[string]known, len(m.Files)), m: &manifest.Manifest{}}
	s.hash = func(_ int, _, path string, st *unix.Stat_t) (string, error) {
		f, ok := m.Find(path)
		if !ok || f.Size != st.Size {
			return "", fmt.Errorf("%q is not as it was restored", path)
		}
		s.seen[path] = known{stampOf(st), now, f.Hash}
		return f.Hash, nil
	}
	if err := s.all(dir); err != nil {
		return err
	}
	if changes := manifest.Compare(m, s.m); !changes.Empty() {
		return fmt.Errorf("%d files are not as they were restored", len(changes.Added)+len(changes.Changed)+len(changes.Removed))
	}
	c.files = s.seen
	return nil
}
