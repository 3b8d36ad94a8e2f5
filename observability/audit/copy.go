package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Defaults and limits of a Copier.
const (
	defaultCopy   = time.Minute
	compareCopies = time.Hour
	objectTimeout = 2 * time.Minute  // for one segment
	lastCopy      = 10 * time.Second // for what is not copied yet when the auditor ends
)

// CopyConfig is fixed for the life of a Copier.
type CopyConfig struct {
	Dir    string
	Bucket jetstream.ObjectStore
	Every  time.Duration // between copies; default 1 min
	Log    *slog.Logger  // default: discard
}

// Copier keeps a second place of a folder, in an object store: one object for each segment, by its path. Segments come
// before the heads that cover them. Killed at any moment, the copy is an older state of the folder, with entries at
// the ends of chains that no head covers yet.
//
// An object is replaced only by what begins with it. One with other bytes is left as it is, reported in the log, and
// counted.
type Copier struct {
	cfg      CopyConfig
	known    map[string]digest // of closed segments, by path
	done     map[string]extent // what is copied, by chain
	told     map[string]bool   // conflicts
	compared time.Time

	errors, conflicts, position atomic.Uint64
}

// digest is what an object store says of an object.
type digest struct {
	size uint64
	sum  string
}

// NewCopier returns a Copier of a folder. Hand it to an Auditor.
func NewCopier(cfg CopyConfig) *Copier {
	cfg.Every = cmp.Or(cfg.Every, defaultCopy)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Copier{cfg: cfg, known: map[string]digest{}, done: map[string]extent{}, told: map[string]bool{}}
}

// Position is up to where EVENTS is in the copies, since the start.
func (c *Copier) Position() uint64 { return c.position.Load() }

// Errors is how often copying failed, since the start. It is tried again.
func (c *Copier) Errors() uint64 { return c.errors.Load() }

// Conflicts is how many objects were found that are not what the folder has, since the start.
func (c *Copier) Conflicts() uint64 { return c.conflicts.Load() }

// run copies the newest snapshot from time to time until ctx ends.
func (c *Copier) run(ctx context.Context, newest *atomic.Pointer[snapshot]) {
	ticker := time.NewTicker(c.cfg.Every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		c.copy(ctx, newest.Load())
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// finish copies what is committed when ctx has ended. It takes ten seconds at most.
func (c *Copier) finish(ctx context.Context, newest *snapshot) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCopy)
	defer cancel()
	c.copy(ctx, newest)
}

func (c *Copier) copy(ctx context.Context, s *snapshot) {
	if err := c.copyAll(ctx, s, time.Now()); err != nil && !errors.Is(err, context.Canceled) {
		c.errors.Add(1)
		c.cfg.Log.WarnContext(ctx, "copy the audit to the object store", "err", err)
	}
}

// copyAll copies what is not there yet. At first, and from time to time, it compares everything.
func (c *Copier) copyAll(ctx context.Context, s *snapshot, now time.Time) error {
	var stored map[string]*jetstream.ObjectInfo
	all := now.Sub(c.compared) >= compareCopies
	if all {
		var err error
		if stored, err = objects(ctx, c.cfg.Bucket); err != nil {
			return err
		}
		clear(c.done)
	}
	for _, x := range s.extents {
		if err := c.chain(ctx, x, stored); err != nil {
			return err
		}
	}
	c.position.Store(s.position)
	if !all {
		return nil
	}
	c.compared = now
	return c.rest(ctx, s, stored)
}

// chain copies the segments of a chain that changed. With stored, it takes from there what it has looked at.
func (c *Copier) chain(ctx context.Context, x extent, stored map[string]*jetstream.ObjectInfo) error {
	done := c.done[x.chain]
	if done == x {
		return nil
	}
	segs, err := segments(c.cfg.Dir, x.chain)
	if err != nil {
		return err
	}
	for _, seg := range segs {
		if seg < max(x.from, done.segment) || seg > x.segment {
			continue
		}
		name := x.chain + "/" + segmentName(seg)
		there := stored[name]
		if stored == nil {
			if there, err = c.cfg.Bucket.GetInfo(ctx, name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
				return fmt.Errorf("look at %s: %w", name, err)
			}
		}
		delete(stored, name)
		size := int64(-1)
		if seg == x.segment {
			size = x.size
		}
		if err := c.segment(ctx, name, size, there); err != nil {
			return err
		}
	}
	if done.from != 0 && done.from < x.from {
		c.compared = time.Time{} // the next round removes what is too old
	}
	c.done[x.chain] = x
	return nil
}

// segment copies a file up to a size; -1: all of it, and it never changes again.
func (c *Copier) segment(ctx context.Context, name string, size int64, there *jetstream.ObjectInfo) error {
	closed := size < 0
	if d, ok := c.known[name]; ok && closed && there != nil {
		if d != (digest{there.Size, there.Digest}) {
			c.conflict(ctx, name, "it is not what was copied")
		}
		return nil
	}
	f, err := os.Open(filepath.Join(c.cfg.Dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) { // removed for its age meanwhile
		return nil
	}
	if err != nil {
		return fmt.Errorf("read segment: %w", err)
	}
	defer f.Close()
	if closed {
		info, err := f.Stat()
		if err != nil {
			return fmt.Errorf("look at segment: %w", err)
		}
		size = info.Size()
	}
	whole := uint64(size)
	if there != nil {
		same, err := begins(f, whole, there)
		switch {
		case err != nil:
			return fmt.Errorf("read %s: %w", name, err)
		case !same:
			c.conflict(ctx, name, "the segment does not begin with it")
			return nil
		}
	}
	if there == nil || there.Size < whole {
		if there, err = c.put(ctx, name, io.NewSectionReader(f, 0, size)); err != nil {
			return err
		}
		if there.Size != whole {
			return fmt.Errorf("copy %s: it has %d bytes of %d", name, there.Size, size)
		}
	}
	if closed {
		c.known[name] = digest{there.Size, there.Digest}
	}
	return nil
}

func (c *Copier) put(ctx context.Context, name string, r io.Reader) (*jetstream.ObjectInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	info, err := c.cfg.Bucket.Put(ctx, jetstream.ObjectMeta{Name: name}, yielding{r})
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", name, err)
	}
	return info, nil
}

// yielding is a reader that rests at its end. Put starts a goroutine for each object, which in nats.go v1.55 never ends
// when the object is stored before it has run at all.
type yielding struct{ io.Reader }

// rest is long for a goroutine that may run, also on a machine with far too much to do.
const rest = 20 * time.Millisecond

func (y yielding) Read(p []byte) (int, error) {
	n, err := y.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		<-time.After(rest)
	}
	return n, err
}

// begins reports whether the first bytes of a file are an object.
func begins(f io.ReaderAt, size uint64, there *jetstream.ObjectInfo) (bool, error) {
	if there.Size > size {
		return false, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, int64(there.Size))); err != nil {
		return false, err
	}
	return jetstream.GetObjectDigestValue(h) == there.Digest, nil
}

// rest removes objects of segments that were removed for their age, as a copied head says, and reports others
// that are not in the folder.
func (c *Copier) rest(ctx context.Context, s *snapshot, stored map[string]*jetstream.ObjectInfo) error {
	kept := map[string]uint64{}
	for _, x := range s.extents {
		kept[x.chain] = x.from
	}
	for name := range stored {
		chain, seg, ok := parseName(name)
		if from := kept[chain]; !ok || from == 0 || seg >= from {
			c.conflict(ctx, name, "the folder has no such segment")
			continue
		}
		if err := c.cfg.Bucket.Delete(ctx, name); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
		delete(c.known, name)
	}
	return nil
}

// conflict reports an object, once.
func (c *Copier) conflict(ctx context.Context, name, why string) {
	if c.told[name] || len(c.told) >= maxReported {
		return
	}
	c.told[name] = true
	c.conflicts.Add(1)
	c.cfg.Log.ErrorContext(ctx, "an object of the audit's store is not as the folder has it, and is left so", "object", name, "reason", why)
}

// objects are those of a store, by name.
func objects(ctx context.Context, store jetstream.ObjectStore) (map[string]*jetstream.ObjectInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	list, err := store.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, fmt.Errorf("list the objects: %w", err)
	}
	out := map[string]*jetstream.ObjectInfo{}
	for _, o := range list {
		out[o.Name] = o
	}
	return out, nil
}
