package files_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/manifest"
)

// text returns bytes that are like no others.
func text(size int) []byte {
	r := rand.NewChaCha8([32]byte{byte(size), byte(size >> 8), byte(size >> 16)})
	b := make([]byte, size)
	_, _ = r.Read(b)
	return b
}

func put(t *testing.T, st *files.Store, tenant string, data []byte) (hash string) {
	t.Helper()
	hash = manifest.HashOf(data)
	if err := st.Put(bustest.Context(t), tenant, hash, int64(len(data)), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	return hash
}

// get reads a content that is to be data.
func get(t *testing.T, st *files.Store, tenant string, data []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := st.Get(bustest.Context(t), tenant, manifest.HashOf(data), int64(len(data)), &got); err != nil {
		t.Fatalf("%d bytes: %v", len(data), err)
	}
	if !bytes.Equal(got.Bytes(), data) {
		t.Errorf("%d bytes came back as %d others", len(data), got.Len())
	}
}

func has(t *testing.T, st *files.Store, tenant, hash string) bool {
	t.Helper()
	ok, err := st.Has(bustest.Context(t), tenant, hash)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestPutAndGet(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	testPutAndGet(t, files.New(b))
}

func TestPutAndGetSealed(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	testPutAndGet(t, files.NewSealed(b, newKeys(t, b)))
}

func testPutAndGet(t *testing.T, st *files.Store) {
	t.Helper()
	for _, size := range []int{0, 1, files.Inline, files.Inline + 1, files.PartSize, files.PartSize + 1, 3*files.PartSize - 7} {
		data := text(size)
		if has(t, st, "acme", manifest.HashOf(data)) {
			t.Errorf("%d bytes are there before they are stored", size)
		}
		hash := put(t, st, "acme", data)
		put(t, st, "acme", data) // again is no error
		get(t, st, "acme", data)
		if !has(t, st, "acme", hash) || has(t, st, "other", hash) {
			t.Errorf("%d bytes: Has is wrong for the tenant or for another", size)
		}
		if err := st.Get(bustest.Context(t), "other", hash, int64(size), io.Discard); !errors.Is(err, manifest.ErrMissing) {
			t.Errorf("another tenant reads %d bytes: %v", size, err)
		}
		if size > 0 {
			if err := st.Get(bustest.Context(t), "acme", hash, int64(size-1), io.Discard); !errors.Is(err, manifest.ErrDamaged) {
				t.Errorf("more than was asked for: %v", err)
			}
		}
	}
}

func TestCopyOfARange(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	st := files.New(b)
	for _, size := range []int{10, 2*files.PartSize + 100} {
		data := text(size)
		c, err := st.Open(bustest.Context(t), "acme", put(t, st, "acme", data))
		if err != nil || c.Size != int64(size) {
			t.Fatalf("open: %v, %v", c, err)
		}
		for _, r := range [][2]int{{0, size}, {0, 1}, {size - 1, 1}, {size - 1, 5}, {size, 1}, {size + 5, 1}, {3, 4}, {size / 3, size / 2}, {2, 0}} {
			var got bytes.Buffer
			if err := c.Copy(bustest.Context(t), &got, int64(r[0]), int64(r[1])); err != nil {
				t.Errorf("%d bytes from %d of %d: %v", r[1], r[0], size, err)
			}
			want := data[min(r[0], size):min(r[0]+r[1], size)]
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%d bytes from %d of %d are %d", r[1], r[0], size, got.Len())
			}
		}
		if err := c.Copy(bustest.Context(t), io.Discard, -1, 1); err == nil {
			t.Error("a range before the beginning is accepted")
		}
	}
}

// A large content that is stored already is not moved again: neither Has nor what follows from it stores a part.
func TestALargeContentMovesOnce(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := files.New(b)
	data := text(3 * files.PartSize)
	hash := put(t, st, "acme", data)
	if n := bustest.StreamLength(t, nc, bus.StreamFiles); n != 4 {
		t.Errorf("%d messages, want a head and three parts", n)
	}
	late := st.At(files.Margin) // its mark is old: it is marked again
	if !has(t, late, "acme", hash) {
		t.Error("it is not found")
	}
	if n := bustest.StreamLength(t, nc, bus.StreamFiles); n != 4 {
		t.Errorf("%d messages after it was found: it moved again", n)
	}
	get(t, st, "acme", data)
}

func TestWhatIsDamagedIsNotRead(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := files.New(b)
	small, large := text(100), text(2*files.PartSize)
	for name, spoil := range map[string]func(t *testing.T, tenant string) (data []byte, want error){
		"the content of a head": func(t *testing.T, tenant string) ([]byte, error) {
			hash := put(t, st, tenant, small)
			store(t, b, files.HeadSubject(tenant, hash), []byte("another"))
			return small, manifest.ErrDamaged
		},
		"a part": func(t *testing.T, tenant string) ([]byte, error) {
			put(t, st, tenant, large)
			store(t, b, part(t, b, tenant, 1), text(files.PartSize-1))
			return large, manifest.ErrDamaged
		},
		"a part is missing": func(t *testing.T, tenant string) ([]byte, error) {
			put(t, st, tenant, large)
			if err := b.Stream(bus.StreamFiles).Clear(bustest.Context(t), part(t, b, tenant, 0)); err != nil {
				t.Fatal(err)
			}
			return large, manifest.ErrMissing
		},
		"a head without JSON": func(t *testing.T, tenant string) ([]byte, error) {
			hash := put(t, st, tenant, large)
			m := &nats.Msg{Subject: files.HeadSubject(tenant, hash), Header: nats.Header{"Longshore-Put": {"x"}}, Data: []byte("{")}
			if _, err := b.Store(bustest.Context(t), m); err != nil {
				t.Fatal(err)
			}
			return large, nil
		},
		"a head whose parts are of another content": func(t *testing.T, tenant string) ([]byte, error) {
			other := text(2*files.PartSize + 1)
			m, _, err := b.Stream(bus.StreamFiles).Get(bustest.Context(t), bus.Lookup{Last: files.HeadSubject(tenant, put(t, st, tenant, other))})
			if err != nil {
				t.Fatal(err)
			}
			hash := put(t, st, tenant, large)
			forged := &nats.Msg{Subject: files.HeadSubject(tenant, hash), Header: nats.Header{"Longshore-Put": m.Header["Longshore-Put"]}, Data: m.Data}
			if _, err := b.Store(bustest.Context(t), forged); err != nil {
				t.Fatal(err)
			}
			return large, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, want := spoil(t, strings.ReplaceAll(name, " ", "-"))
			err := st.Get(bustest.Context(t), strings.ReplaceAll(name, " ", "-"), manifest.HashOf(data), int64(len(data))+1, io.Discard)
			if err == nil || want != nil && !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
	_ = nc
}

// part is the subject of a part of the only content of a tenant.
func part(t *testing.T, b *bus.Bus, tenant string, n int) string {
	t.Helper()
	for subject, err := range b.Stream(bus.StreamFiles).Subjects(bustest.Context(t), "files."+tenant+".part.>") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(subject, "."+string(rune('0'+n))) {
			return subject
		}
	}
	t.Fatal("there is no such part")
	return ""
}

func store(t *testing.T, b *bus.Bus, subject string, data []byte) {
	t.Helper()
	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: data}
	if _, err := b.Store(bustest.Context(t), m); err != nil {
		t.Fatal(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Nothing is stored under a hash that the content does not have.
func TestPutRefuses(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	st, ctx := files.New(b), bustest.Context(t)
	broken := errors.New("the disk is broken")
	for _, size := range []int{10, files.PartSize + 10} {
		data := text(size)
		hash := manifest.HashOf(data)
		for name, tc := range map[string]struct {
			r    io.Reader
			want error
		}{
			"less":    {bytes.NewReader(data[:size-1]), manifest.ErrDamaged},
			"another": {bytes.NewReader(text(size + 1)), manifest.ErrDamaged},
			"none":    {failing{broken}, broken},
			"a break": {io.MultiReader(bytes.NewReader(data[:size/2]), failing{broken}), broken},
		} {
			if err := st.Put(ctx, "acme", hash, int64(size), tc.r); !errors.Is(err, tc.want) {
				t.Errorf("%s of %d bytes: %v, want %v", name, size, err, tc.want)
			}
			if has(t, st, "acme", hash) {
				t.Errorf("%s of %d bytes is stored", name, size)
			}
		}
	}
	for _, tc := range []struct{ tenant, hash string }{{"a.b", manifest.HashOf(nil)}, {"acme", "x"}, {"acme", manifest.HashOf(nil)[1:] + ">"}} {
		if err := st.Put(ctx, tc.tenant, tc.hash, 0, bytes.NewReader(nil)); err == nil {
			t.Errorf("%v is accepted", tc)
		}
		if _, err := st.Has(ctx, tc.tenant, tc.hash); err == nil {
			t.Errorf("%v is looked for", tc)
		}
	}
	if err := st.Refer(ctx, messages.Ref{Tenant: "acme", Run: "*"}, manifest.HashOf(nil)); err == nil {
		t.Error("a run with a wildcard is referred to")
	}
}

// A store that does not answer is an error within the budget of the bus, and what was begun can be done again.
func TestStoreIsAway(t *testing.T) {
	t.Parallel()
	servers := bustest.Start(t)
	b, nc := bustest.Open(t, servers, bus.Config{})
	st := files.New(b)
	data := text(2 * files.PartSize)
	ctx, cancel := context.WithCancelCause(t.Context())
	nc.Close()
	cancel(errors.New("the claim is over"))
	if err := st.Put(ctx, "acme", manifest.HashOf(data), int64(len(data)), bytes.NewReader(data)); err == nil {
		t.Error("it is stored without a server")
	}
	again, _ := bustest.Open(t, servers, bus.Config{})
	st = files.New(again)
	put(t, st, "acme", data)
	get(t, st, "acme", data)
}
