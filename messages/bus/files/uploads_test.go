package files_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/manifest"
)

// upload stores a content in parts, each of them twice, and returns the last answer.
func upload(t *testing.T, u *files.Uploads, tenant string, data []byte, part int) (p files.Progress, err error) {
	t.Helper()
	next := files.Part{Hash: manifest.HashOf(data), Size: int64(len(data))}
	for !p.Done {
		next.Data = data[next.Offset:min(next.Offset+int64(part), next.Size)]
		if p, err = u.Part(bustest.Context(t), tenant, next); err != nil {
			return p, err
		}
		next.Upload = p.Upload
		if p.Upload != "" { // the answer was lost
			again, err := u.Part(bustest.Context(t), tenant, next)
			if err != nil || again != p {
				t.Fatalf("sent again: %+v, %v, want %+v", again, err, p)
			}
		}
		next.Offset = p.Next
	}
	return p, nil
}

func TestUploadInParts(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := files.New(b)
	u := files.NewUploads(st, files.UploadLimits{})
	for _, tc := range []struct{ size, part int }{{1, 1}, {100, 30}, {3 * files.PartSize, files.PartSize}, {2*files.PartSize + 1, files.PartSize}} {
		data := text(tc.size)
		if _, err := upload(t, u, "acme", data, tc.part); err != nil {
			t.Fatalf("%d bytes in parts of %d: %v", tc.size, tc.part, err)
		}
		get(t, st, "acme", data)
		if has(t, st, "other", manifest.HashOf(data)) {
			t.Error("another tenant has it too")
		}
		before := bustest.StreamLength(t, nc, bus.StreamFiles)
		if p, err := upload(t, u, "acme", data, tc.part); err != nil || p.Upload != "" || bustest.StreamLength(t, nc, bus.StreamFiles) != before {
			t.Errorf("a second upload stores something: %+v, %v", p, err)
		}
	}
}

// Of a content that is not what it was said to be nothing is left.
func TestUploadsThatLie(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := files.New(b)
	u := files.NewUploads(st, files.UploadLimits{Content: 1 << 20})
	data, ctx := text(100), bustest.Context(t)
	hash := manifest.HashOf(text(99))
	first := files.Part{Hash: hash, Size: 100, Data: data[:60]}
	p, err := u.Part(ctx, "acme", first)
	if err != nil || p.Next != 60 || p.Done {
		t.Fatalf("%+v, %v", p, err)
	}
	for name, wrong := range map[string]files.Part{
		"another place":  {Hash: hash, Size: 100, Upload: p.Upload, Offset: 50, Data: data[50:100]},
		"a gap":          {Hash: hash, Size: 300, Upload: p.Upload, Offset: 120, Data: data[:60]},
		"too short":      {Hash: hash, Size: 100, Upload: p.Upload, Offset: 60, Data: data[60:61]},
		"too long":       {Hash: hash, Size: 100, Upload: p.Upload, Offset: 60, Data: data[50:100]},
		"another size":   {Hash: hash, Size: 101, Upload: p.Upload, Offset: 60, Data: data[60:100]},
		"another hash":   {Hash: manifest.HashOf(data), Size: 100, Upload: p.Upload, Offset: 60, Data: data[60:100]},
		"another first":  {Hash: hash, Size: 100, Upload: p.Upload, Data: data[1:61]},
		"another upload": {Hash: hash, Size: 100, Upload: "x", Offset: 60, Data: data[60:100]},
		"no token":       {Hash: hash, Size: 100, Upload: "*", Offset: 60, Data: data[60:100]},
		"a wildcard":     {Hash: hash, Size: 100, Upload: ">", Offset: 60, Data: data[60:100]},
		"nothing":        {Hash: hash, Size: 100, Upload: p.Upload, Offset: 60},
	} {
		if _, err := u.Part(ctx, "acme", wrong); !errors.Is(err, files.ErrNoUpload) {
			t.Errorf("%s: %v", name, err)
		}
	}
	last := files.Part{Hash: hash, Size: 100, Upload: p.Upload, Offset: 60, Data: data[60:]}
	if _, err := u.Part(ctx, "other", last); !errors.Is(err, files.ErrNoUpload) {
		t.Errorf("another tenant continues it: %v", err)
	}
	if _, err := u.Part(ctx, "acme", last); !errors.Is(err, manifest.ErrDamaged) {
		t.Errorf("another content than the hash says: %v", err)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamFiles); n != 0 {
		t.Errorf("%d messages are left", n)
	}
	if _, err := u.Part(ctx, "acme", files.Part{Hash: hash, Size: 1<<20 + 1, Data: data}); !tooLarge(err) {
		t.Errorf("more than a content may have: %v", err)
	}
	if err := u.Put(ctx, "acme", map[string][]byte{hash: make([]byte, 1<<20+1)}); !tooLarge(err) {
		t.Errorf("more than a content may have, at once: %v", err)
	}
}

func tooLarge(err error) bool {
	_, is := errors.AsType[*files.TooLargeError](err)
	return is
}

// An upload that is given up leaves nothing, and no part of it is taken afterwards. One that is whole cannot be given up.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := files.New(b)
	u, ctx, data := files.NewUploads(st, files.UploadLimits{}), bustest.Context(t), text(100)
	first := files.Part{Hash: manifest.HashOf(data), Size: 100, Data: data[:50]}
	p, err := u.Part(ctx, "acme", first)
	if err != nil {
		t.Fatal(err)
	}
	first.Upload = p.Upload
	if err := u.GiveUp(ctx, "other", first); !errors.Is(err, files.ErrNoUpload) {
		t.Errorf("another tenant gives it up: %v", err)
	}
	if err := u.GiveUp(ctx, "acme", first); err != nil {
		t.Fatal(err)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamFiles); n != 0 {
		t.Errorf("%d messages are left", n)
	}
	first.Offset, first.Data = 50, data[50:]
	if _, err := u.Part(ctx, "acme", first); !errors.Is(err, files.ErrNoUpload) {
		t.Errorf("it continues: %v", err)
	}
	if p, err = upload(t, u, "acme", data, 50); err != nil {
		t.Fatal(err)
	}
	first.Upload = p.Upload
	if err := u.GiveUp(ctx, "acme", first); !errors.Is(err, files.ErrNoUpload) {
		t.Errorf("a whole one is given up: %v", err)
	}
	get(t, st, "acme", data)
}

// Of two that send different parts at once one is refused, and what is stored has its hash.
func TestTwoSendersOfOneUpload(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	st := files.New(b)
	u, ctx := files.NewUploads(st, files.UploadLimits{}), bustest.Context(t)
	data, other := text(2000), text(1001)
	for range 20 {
		p, err := u.Part(ctx, "acme", files.Part{Hash: manifest.HashOf(data), Size: 2000, Data: data[:1000]})
		if err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		errs := make([]error, 2)
		for i, second := range [][]byte{data[1000:], other[:1000]} {
			both.Go(func() {
				_, errs[i] = u.Part(ctx, "acme", files.Part{Hash: manifest.HashOf(data), Size: 2000, Upload: p.Upload, Offset: 1000, Data: second})
			})
		}
		both.Wait()
		if errs[1] == nil {
			t.Fatal("a part of another content ends it")
		}
		if errs[0] != nil {
			continue // the other one was first
		}
		get(t, st, "acme", data)
		if err := b.Stream(bus.StreamFiles).Clear(ctx, "files.>"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPutAndMissing(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := files.New(b)
	u, ctx := files.NewUploads(st, files.UploadLimits{}), bustest.Context(t)
	contents, hashes := map[string][]byte{}, []string{}
	for i := range 40 {
		data := text(i * 100)
		contents[manifest.HashOf(data)] = data
		hashes = append(hashes, manifest.HashOf(data))
	}
	if missing, err := u.Missing(ctx, "acme", hashes); err != nil || !slices.Equal(missing, hashes) {
		t.Errorf("%d of %d are missing, %v", len(missing), len(hashes), err)
	}
	if err := u.Put(ctx, "acme", contents); err != nil {
		t.Fatal(err)
	}
	for _, data := range contents {
		get(t, st, "acme", data)
	}
	before := bustest.StreamLength(t, nc, bus.StreamFiles)
	if err := u.Put(ctx, "acme", contents); err != nil || bustest.StreamLength(t, nc, bus.StreamFiles) != before {
		t.Errorf("what is stored is stored again, %v", err)
	}
	if missing, err := u.Missing(ctx, "acme", hashes); err != nil || len(missing) != 0 {
		t.Errorf("%d are missing, %v", len(missing), err)
	}
	if missing, err := u.Missing(ctx, "other", hashes); err != nil || !slices.Equal(missing, hashes) {
		t.Errorf("another tenant learns of them: %d are missing, %v", len(missing), err)
	}
}

// A tenant's uploads are bounded until runs refer to them or they are removed, and those of others do not count.
func TestUploadsAreBounded(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := files.New(b)
	u, ctx := files.NewUploads(st, files.UploadLimits{Pending: 4 << 20}), bustest.Context(t)
	put := func(tenant string, size int) error {
		data := text(size)
		return u.Put(ctx, tenant, map[string][]byte{manifest.HashOf(data): data})
	}
	full := func(err error) bool {
		_, is := errors.AsType[*files.NoRoomError](err)
		return is
	}
	for size := 1_000_000; size < 1_000_004; size++ {
		if err := put("acme", size); err != nil {
			t.Fatal(err)
		}
	}
	before := bustest.StreamLength(t, nc, bus.StreamFiles)
	if err := put("acme", 1_000_004); !full(err) {
		t.Errorf("beyond the bound: %v", err)
	}
	if _, err := upload(t, u, "acme", text(1_000_004), files.PartSize); !full(err) {
		t.Errorf("beyond the bound, in parts: %v", err)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamFiles); n != before {
		t.Errorf("what was refused has left %d messages", n-before)
	}
	if err := put("acme", 1_000_000); err != nil {
		t.Errorf("what is stored already: %v", err)
	}
	if err := put("other", 1_000_004); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	refer(t, st, messages.Ref{Tenant: "acme", Run: "r1"}, text(1_000_000), text(1_000_001))
	if err := put("acme", 1_000_004); !full(err) {
		t.Errorf("it is reckoned again at once: %v", err)
	}
	u.At(files.ReckonEvery)
	for size := 1_000_004; size < 1_000_006; size++ {
		if err := put("acme", size); err != nil {
			t.Errorf("after a run refers to two of them: %v", err)
		}
	}
	if err := put("acme", 1_000_006); !full(err) {
		t.Errorf("beyond the bound again: %v", err)
	}
}

// A content that is found from time to time is not removed, and still counts.
func TestAnUploadThatIsFoundCounts(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	st := files.New(b)
	u, ctx, data := files.NewUploads(st, files.UploadLimits{Pending: 1 << 20}), bustest.Context(t), text(900_000)
	hash := manifest.HashOf(data)
	if err := u.Put(ctx, "acme", map[string][]byte{hash: data}); err != nil {
		t.Fatal(err)
	}
	if !has(t, st.At(files.Margin*3/4), "acme", hash) {
		t.Fatal("it is not found")
	}
	mark, _, err := b.Stream(bus.StreamFiles).Get(ctx, bus.Lookup{Last: files.HeadSubject("acme", hash)})
	if err != nil {
		t.Fatal(err)
	}
	collect(t, st.When(mark.Time.Add(files.Margin)), files.Collected{})
	more := text(900_001)
	err = u.Put(ctx, "acme", map[string][]byte{manifest.HashOf(more): more})
	if _, full := errors.AsType[*files.NoRoomError](err); !full {
		t.Errorf("it counts no longer: %v", err)
	}
}

// When the contents of uploads are removed their entries are, and what was not finished too.
func TestCollectUploads(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := files.New(b)
	u, ctx := files.NewUploads(st, files.UploadLimits{}), bustest.Context(t)
	kept, gone := text(1000), text(1001)
	for _, data := range [][]byte{kept, gone} {
		if err := u.Put(ctx, "acme", map[string][]byte{manifest.HashOf(data): data}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := u.Part(ctx, "acme", files.Part{Hash: manifest.HashOf(text(3)), Size: 2000, Data: kept}); err != nil {
		t.Fatal(err)
	}
	refer(t, st, messages.Ref{Tenant: "acme", Run: "r1"}, kept)
	if found, err := st.At(2*files.Margin).Collect(ctx, true); err != nil || found != (files.Collected{Contents: 1, Parts: 1}) {
		t.Errorf("a look finds %+v, %v", found, err)
	}
	collect(t, st, files.Collected{})
	collect(t, st.At(2*files.Margin), files.Collected{Contents: 1, Parts: 1})
	var left []string
	for subject, err := range b.Stream(bus.StreamFiles).Subjects(ctx, "files.acme.part.>") {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, subject)
	}
	if diff := cmp.Diff([]string(nil), left); diff != "" {
		t.Error(diff)
	}
	get(t, st, "acme", kept)
	if err := st.Get(ctx, "acme", manifest.HashOf(gone), 1001, io.Discard); !errors.Is(err, manifest.ErrMissing) {
		t.Errorf("what nothing refers to is read: %v", err)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamFiles); n != 3 {
		t.Errorf("%d messages are left: want a content, a manifest and a reference", n)
	}
}

// An upload that takes too long is ended before its parts may be removed.
func TestASlowUpload(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	st, data := files.New(b), text(100)
	first := files.Part{Hash: manifest.HashOf(data), Size: 100, Data: data[:50]}
	p, err := files.NewUploads(st, files.UploadLimits{}).Part(bustest.Context(t), "acme", first)
	if err != nil {
		t.Fatal(err)
	}
	late := files.NewUploads(st.At(files.Margin*3/4), files.UploadLimits{})
	for _, offset := range []int64{0, 50} {
		again := files.Part{Hash: first.Hash, Size: 100, Upload: p.Upload, Offset: offset, Data: bytes.Clone(data[offset : offset+50])}
		if _, err := late.Part(bustest.Context(t), "acme", again); !errors.Is(err, files.ErrNoUpload) {
			t.Errorf("the part at %d: %v", offset, err)
		}
	}
}
