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
	inode          uint64
	size           int64
	modified, meta int64 // in ns
	exec           bool
}

// facts are what is looked at of a file or folder.
type facts struct {
	stamp

	device, links uint64
	kind          uint32
}

// factsOf reads them. The fields have other types on other systems.
//
//nolint:unconvert // see above
func factsOf(st *unix.Stat_t) facts {
	return facts{
		stamp:  stamp{st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano(), st.Mode&unix.S_IXUSR != 0},
		device: uint64(st.Dev), links: uint64(st.Nlink), kind: uint32(st.Mode) & unix.S_IFMT,
	}
}

// How old a change must have been when the content was read. Times are those of a clock that ticks every few milliseconds; some file
// systems keep whole seconds, or every other one.
const (
	tick       = 50 * time.Millisecond
	coarseTick = 2 * time.Second
)

// holds reports whether the file is the one that was read. One that had changed right before may have changed right after.
func (k *known) holds(now *stamp) bool {
	if k.stamp != *now {
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
	s := &scanner{limits: l.withDefaults(), seen: make(map[string]known, len(m.Files)), m: &manifest.Manifest{}}
	s.hash = func(_ int, _, path string, as *facts) (string, error) {
		f, ok := m.Find(path)
		if !ok || f.Size != as.size {
			return "", fmt.Errorf("%q is not as it was restored", path)
		}
		s.seen[path] = known{as.stamp, now, f.Hash}
		return f.Hash, nil
	}
	if err := s.all(ctx, dir); err != nil {
		return err
	}
	if changes := manifest.Compare(m, s.m); !changes.Empty() {
		return fmt.Errorf("%d files are not as they were restored", len(changes.Added)+len(changes.Changed)+len(changes.Removed))
	}
	c.files = s.seen
	return nil
}
