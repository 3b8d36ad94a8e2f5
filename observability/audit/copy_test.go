package audit

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

// bucket makes an object store on a server of its own.
func bucket(t *testing.T) jetstream.ObjectStore {
	t.Helper()
	p := openPort(t)
	js, err := jetstream.New(p.nc)
	if err != nil {
		t.Fatal(err)
	}
	store, err := OpenBucket(t.Context(), js, Bucket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = OpenBucket(t.Context(), js, Bucket); err != nil { // it is there
		t.Fatal(err)
	}
	return store
}

// cutOff is a store that fails from the first put of a kind on, as a process that is killed.
type cutOff struct {
	jetstream.ObjectStore

	before string
}

var errCut = errors.New("killed")

func (c cutOff) Put(ctx context.Context, meta jetstream.ObjectMeta, r io.Reader) (*jetstream.ObjectInfo, error) {
	if strings.HasPrefix(meta.Name, c.before) {
		return nil, errCut
	}
	return c.ObjectStore.Put(ctx, meta, r)
}

// files are those of a folder, without the lock.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock" {
			return err
		}
		body, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func fetched(t *testing.T, store jetstream.ObjectStore) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if _, err := Fetch(t.Context(), store, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func copyNow(t *testing.T, c *Copier, s *Store) {
	t.Helper()
	if err := c.copyAll(t.Context(), s.snapshot(), time.Now()); err != nil {
		t.Fatal(err)
	}
}

// What is fetched is the folder, while it grows, after restarts, and after segments were removed for their age.
func TestCopies(t *testing.T) {
	t.Parallel()
	store, key, dir, now := bucket(t), newKey(t), t.TempDir(), newClock()
	cfg := StoreConfig{Dir: dir, Key: key, SegmentBytes: 2500, Now: now.Now}
	stream := sample()
	c := NewCopier(CopyConfig{Dir: dir, Bucket: store})
	for i, upTo := range []int{5, 13, len(stream)} {
		s := openStore(t, cfg)
		if err := fill(s, stream[:upTo], 3); err != nil {
			t.Fatal(err)
		}
		if i == 2 { // a copier that knows nothing
			c = NewCopier(CopyConfig{Dir: dir, Bucket: store})
		}
		copyNow(t, c, s)
		if diff := cmp.Diff(files(t, dir), files(t, fetched(t, store))); diff != "" {
			t.Fatalf("with %d messages: %s", upTo, diff)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if c.Position() != 40 {
		t.Errorf("position %d", c.Position())
	}
	whole := len(files(t, dir))
	s := openStore(t, cfg)
	if n, err := s.Retire(stream[30].At); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	copyNow(t, c, s)
	copyNow(t, c, s) // it has seen that a chain begins later
	copyDir := fetched(t, store)
	if diff := cmp.Diff(files(t, dir), files(t, copyDir)); diff != "" || len(files(t, dir)) >= whole {
		t.Error(diff)
	}
	found, _, sum := verified(t, VerifyConfig{Dir: copyDir, Keys: PublicKeys{key.Public()}})
	if found != nil || sum.Pending != 0 || sum.Head.Position != 40 {
		t.Errorf("%+v %+v", found, sum)
	}
	if c.Conflicts() != 0 {
		t.Errorf("%d conflicts", c.Conflicts())
	}
}

// Killed between segments and heads, the copy is an older state with entries that no head covers; the next continues.
func TestKilledCopies(t *testing.T) {
	t.Parallel()
	store, key, dir := bucket(t), newKey(t), t.TempDir()
	s := openStore(t, StoreConfig{Dir: dir, Key: key, SegmentBytes: 2500, Now: newClock().Now})
	stream := sample()
	if err := fill(s, stream[:13], 3); err != nil {
		t.Fatal(err)
	}
	copyNow(t, NewCopier(CopyConfig{Dir: dir, Bucket: store}), s)
	if err := fill(s, stream, 3); err != nil {
		t.Fatal(err)
	}
	for _, before := range []string{"tenants/acme/", "tenants/harbour/", "heads/"} {
		c := NewCopier(CopyConfig{Dir: dir, Bucket: cutOff{store, before}})
		if err := c.copyAll(t.Context(), s.snapshot(), time.Now()); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		found, _, sum := verified(t, VerifyConfig{Dir: fetched(t, store), Keys: PublicKeys{key.Public()}})
		if found != nil || sum.Head.Position != stream[12].Seq || before == "heads/" && sum.Pending == 0 {
			t.Errorf("%s: %+v %+v", before, found, sum)
		}
	}
	c := NewCopier(CopyConfig{Dir: dir, Bucket: store})
	copyNow(t, c, s)
	if diff := cmp.Diff(files(t, dir), files(t, fetched(t, store))); diff != "" || c.Conflicts() != 0 {
		t.Errorf("%d %s", c.Conflicts(), diff)
	}
}

// An object that was tampered with is reported, left as it is, and found by Verify.
func TestChangedCopies(t *testing.T) {
	t.Parallel()
	store, key := bucket(t), newKey(t)
	dir := recorded(t, key)
	s := openStore(t, StoreConfig{Dir: dir, Key: key, SegmentBytes: 2500, Now: newClock().Now})
	c := NewCopier(CopyConfig{Dir: dir, Bucket: store})
	copyNow(t, c, s)
	const name = "tenants/acme/00000000000000000001.jsonl"
	changed := strings.Replace(files(t, dir)[name], "a < b", "a > b", 1)
	if _, err := store.Put(t.Context(), jetstream.ObjectMeta{Name: name}, yielding{strings.NewReader(changed)}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), jetstream.ObjectMeta{Name: "tenants/unknown/00000000000000000001.jsonl"}, yielding{strings.NewReader("x")}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is reported once
		if err := c.copyAll(t.Context(), s.snapshot(), time.Now().Add(2*compareCopies)); err != nil || c.Conflicts() != 2 {
			t.Errorf("%v, %d conflicts", err, c.Conflicts())
		}
	}
	fresh := NewCopier(CopyConfig{Dir: dir, Bucket: store})
	copyNow(t, fresh, s)
	if fresh.Conflicts() != 2 {
		t.Errorf("%d conflicts", fresh.Conflicts())
	}
	if got, err := store.GetString(t.Context(), name); err != nil || got != changed {
		t.Errorf("it was written over: %v", err)
	}
	found, _, _ := verified(t, VerifyConfig{Dir: fetched(t, store), Keys: PublicKeys{key.Public()}})
	if len(found) == 0 || found[0].Tenant != "acme" || found[0].File != name || found[0].What != Changed {
		t.Errorf("%+v", found)
	}
}

// What is in a store may be anything.
func TestFetchOfOthers(t *testing.T) {
	t.Parallel()
	store := bucket(t)
	for _, name := range []string{
		"../x", "/etc/x", "heads/../../x", "heads/1.jsonl", "heads/00000000000000000000.jsonl", "tenants/00000000000000000001.jsonl",
		"tenants/a/../b/00000000000000000001.jsonl", "tenants/A/00000000000000000001.jsonl", "tenants/a.b/00000000000000000001.jsonl", "heads",
	} {
		if _, err := store.Put(t.Context(), jetstream.ObjectMeta{Name: name}, yielding{strings.NewReader("x")}); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "copy")
	got, err := Fetch(t.Context(), store, dir)
	if !errors.Is(err, ErrObject) || got.Segments != 0 || len(files(t, dir)) != 0 || strings.Count(err.Error(), "object") != 10 {
		t.Errorf("%+v %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Fetch(t.Context(), store, dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Error(err)
	}
}
