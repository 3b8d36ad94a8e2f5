package pack_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/longshore-run/longshore/worker/repository/pack"
	"github.com/longshore-run/longshore/worker/repository/repositorytest"
)

var limits = pack.Limits{Objects: 100, Bytes: 1 << 20}

func spool(tb testing.TB) *os.File {
	tb.Helper()
	f, err := os.CreateTemp(tb.TempDir(), "")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	return f
}

// Deltas that come before their base, and upon one another, are objects when it is there.
func TestDeltasBeforeTheirBase(t *testing.T) {
	t.Parallel()
	s := repositorytest.New(t) // names objects
	id := func(hex string) []byte {
		id, err := pack.ParseID(hex)
		if err != nil {
			t.Fatal(err)
		}
		return id[:]
	}
	one, two, three := "0123456789", "0123456789+", "0123456789+!"
	a, b, c := s.Blob(one), s.Blob(two), s.Blob(three)
	tree := append(append([]byte("100644 c\x00"), id(c)...), append([]byte("100644 a\x00"), id(a)...)...)
	root := s.Tree(repositorytest.Entry{Mode: "100644", Name: "c", ID: c}, repositorytest.Entry{Mode: "100644", Name: "a", ID: a})
	commit := s.Commit(root)
	said := []byte("tree " + root + "\nauthor A <a@example.com> 0 +0000\ncommitter A <a@example.com> 0 +0000\n\nA commit\n")
	toThree := append([]byte{11, 12, 0x80 | 0x10, 11, 1}, '!')
	toTwo := append([]byte{10, 11, 0x80 | 0x01 | 0x10, 0, 10, 1}, '+')
	const ref = 7
	data := repositorytest.Pack(5,
		repositorytest.PackEntry(ref, len(toThree), id(b), toThree), repositorytest.PackEntry(1, len(said), nil, said),
		repositorytest.PackEntry(ref, len(toTwo), id(a), toTwo), repositorytest.PackEntry(2, len(tree), nil, tree),
		repositorytest.PackEntry(3, len(one), nil, []byte(one)))
	objects, err := pack.Read(t.Context(), bytes.NewReader(data), spool(t), limits)
	if err != nil {
		t.Fatal(err)
	}
	commitID, err := pack.ParseID(commit)
	if err != nil {
		t.Fatal(err)
	}
	l, err := objects.List(t.Context(), commitID, "", 10)
	if err != nil || len(l.Files) != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	if got, err := io.ReadAll(l.Files[0].Content); string(got) != three || err != nil {
		t.Errorf("the file is %q, %v", got, err)
	}
	data = repositorytest.Pack(1, repositorytest.PackEntry(ref, len(toTwo), id(a), toTwo))
	if _, err := pack.Read(t.Context(), bytes.NewReader(data), spool(t), limits); !errors.Is(err, pack.ErrMalformed) {
		t.Errorf("a delta without a base: %v", err)
	}
}

// A wrong delta is refused, whatever is wrong with it.
func TestWrongDeltas(t *testing.T) {
	t.Parallel()
	base := []byte("0123456789")
	first := repositorytest.PackEntry(3, len(base), nil, base)
	for name, delta := range map[string][]byte{
		"of another base":      {9, 1, 1, 'x'},
		"no size":              {10},
		"an endless size":      {10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"beyond the base":      {10, 5, 0x80 | 0x01 | 0x10, 8, 5},
		"far beyond":           {10, 5, 0x80 | 0x0f | 0x70, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"less than it says":    {10, 5, 1, 'x'},
		"more than it says":    {10, 1, 2, 'x', 'y'},
		"an unknown operation": {10, 1, 0},
		"cut":                  {10, 5, 5, 'x'},
		"cut in its numbers":   {10, 5, 0x80 | 0x01 | 0x10, 1},
	} {
		data := repositorytest.Pack(2, first, repositorytest.PackEntry(6, len(delta), []byte{byte(len(first))}, delta))
		if _, err := pack.Read(t.Context(), bytes.NewReader(data), spool(t), limits); !errors.Is(err, pack.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, data := range map[string][]byte{
		"no pack":           []byte("<html>nothing</html>"),
		"another version":   []byte("PACK\x00\x00\x00\x04\x00\x00\x00\x00"),
		"an unknown kind":   repositorytest.Pack(1, repositorytest.PackEntry(5, 1, nil, []byte("x"))),
		"a base before all": repositorytest.Pack(1, repositorytest.PackEntry(6, 1, []byte{100}, []byte("x"))),
		"less than it says": repositorytest.Pack(1, repositorytest.PackEntry(3, 9, nil, []byte("x"))),
		"no compression":    repositorytest.Pack(1, []byte{3<<4 | 1, 'x', 'x', 'x', 'x'}),
	} {
		if _, err := pack.Read(t.Context(), bytes.NewReader(data), spool(t), limits); !errors.Is(err, pack.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a server sends, the spool keeps its bound, and what is listed can be read.
func FuzzRead(f *testing.F) {
	base := []byte("0123456789")
	first := repositorytest.PackEntry(3, len(base), nil, base)
	f.Add(repositorytest.Pack(1, first))
	f.Add(repositorytest.Pack(2, first, repositorytest.PackEntry(6, 6, []byte{byte(len(first))}, []byte{10, 11, 0x91, 0, 10, 1, '+'})))
	tree := append([]byte("100644 a\x00"), make([]byte, 20)...)
	f.Add(repositorytest.Pack(1, repositorytest.PackEntry(2, len(tree), nil, tree)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := spool(t)
		objects, err := pack.Read(t.Context(), bytes.NewReader(data), s, pack.Limits{Objects: 10, Bytes: 4096})
		if info, statErr := s.Stat(); statErr != nil || info.Size() > 4096 {
			t.Fatalf("the spool has %d bytes: %v", info.Size(), statErr)
		}
		if err != nil {
			return
		}
		for _, id := range objects.IDs() {
			l, err := objects.List(t.Context(), id, "", 100)
			for i := 0; err == nil && i < len(l.Files); i++ {
				if _, err := io.Copy(io.Discard, l.Files[i].Content); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
