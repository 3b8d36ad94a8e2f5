package files_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/record"
)

func newKeys(t *testing.T, b *bus.Bus) *keyring.Keyring {
	t.Helper()
	master, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	return keyring.New(b, keyring.Config{Master: master})
}

// Contents are stored sealed, small and in parts; what is moved is damaged; what was stored before there were keys is read.
func TestContentsAreSealed(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	ctx := bustest.Context(t)
	plain, st := files.New(b), files.NewSealed(b, newKeys(t, b))
	const planted = "xylophone-7731"
	small, other := []byte(planted), []byte(planted+"!")
	large := bytes.Repeat([]byte(planted), 2*files.PartSize/len(planted))
	odd := []byte(keyring.Prefix + " is how this file begins")
	for _, data := range [][]byte{small, other, large, odd} {
		put(t, st, "acme", data)
		get(t, st, "acme", data)
		put(t, plain, "before", data)
		get(t, plain, "before", data)
		get(t, st, "before", data)
	}
	sent := bytes.Repeat([]byte(planted+"?"), 2*files.PartSize/len(planted))
	if _, err := upload(t, files.NewUploads(st, files.UploadLimits{}), "acme", sent, files.PartSize); err != nil {
		t.Fatal(err)
	}
	get(t, st, "acme", sent)
	for _, data := range [][]byte{small, large, sent} {
		if size, ok, err := st.Stat(ctx, "acme", manifest.HashOf(data)); err != nil || !ok || size != int64(len(data)) {
			t.Errorf("a content of %d bytes: %d %v %v", len(data), size, ok, err)
		}
	}
	err := plain.Get(ctx, "acme", manifest.HashOf(small), 1<<20, io.Discard)
	if !errors.Is(err, record.ErrNoKey) {
		t.Errorf("without keys: %v", err)
	}
	stream, err := bustest.NewJetStream(t, nc).Stream(ctx, bus.StreamFiles)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if err == nil && bytes.HasPrefix([]byte(m.Subject), []byte("files.acme.")) && bytes.Contains(m.Data, []byte(planted)) {
			t.Errorf("%s is in the clear", m.Subject)
		}
	}
	from, err := stream.GetLastMsgForSubject(ctx, "files.acme.head."+manifest.HashOf(small))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bustest.NewJetStream(t, nc).PublishMsg(ctx, &nats.Msg{Subject: "files.acme.head." + manifest.HashOf(other), Data: from.Data}); err != nil {
		t.Fatal(err)
	}
	if err := st.Get(ctx, "acme", manifest.HashOf(other), 1<<20, io.Discard); err == nil {
		t.Error("the content of another name is read")
	}
}

// What is known of an upload holds the end of its last part.
func TestUploadsAreSealed(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := files.NewSealed(b, newKeys(t, b))
	u := files.NewUploads(st, files.UploadLimits{})
	const planted = "xylophone-7731 and no more than that"
	if _, err := upload(t, u, "acme", []byte(planted), len(planted)-1); err != nil {
		t.Fatal(err)
	}
	js := bustest.NewJetStream(t, nc)
	stream, err := js.Stream(bustest.Context(t), bus.StreamFiles)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(bustest.Context(t), seq)
		if err != nil {
			continue
		}
		seen++
		if bytes.Contains(m.Data, []byte(planted[:10])) || bytes.Contains(m.Data, []byte("eHlsb3Bob25l")) {
			t.Errorf("%s is in the clear: %q", m.Subject, m.Data)
		}
	}
	if seen == 0 {
		t.Error("nothing was stored")
	}
	get(t, st, "acme", []byte(planted))
}

// lateSealer fails to open from a moment on.
type lateSealer struct {
	files.Sealer
	err error
}

func (s *lateSealer) Open(ctx context.Context, tenant string, value, at []byte) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.Sealer.Open(ctx, tenant, value, at)
}

// A key that cannot be read now does not make a content look as if it were not stored; one that is gone for good does.
func TestStatWithoutTheKey(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	sealer := &lateSealer{Sealer: newKeys(t, b)}
	st := files.NewSealed(b, sealer)
	hash := put(t, st, "acme", []byte("some text"))
	for _, err := range []error{context.DeadlineExceeded, &keyring.NoKeyError{Tenant: "acme", Key: 7}} {
		sealer.err = err
		if _, ok, got := st.Stat(bustest.Context(t), "acme", hash); !errors.Is(got, err) {
			t.Errorf("%v: got %v, %v", err, ok, got)
		}
	}
	for _, err := range []error{keyring.ErrDamaged, keyring.ErrClear, &keyring.DestroyedError{Tenant: "acme"}} {
		sealer.err = err
		if _, ok, got := st.Stat(bustest.Context(t), "acme", hash); ok || got != nil {
			t.Errorf("%v: got %v, %v", err, ok, got)
		}
		if err := st.Get(bustest.Context(t), "acme", hash, 1<<20, io.Discard); !errors.Is(err, manifest.ErrDamaged) {
			t.Errorf("%v: got %v", sealer.err, err)
		}
	}
}

// Files of a tenant whose key was destroyed do not keep what else the tenant no longer refers to.
func TestCollectAfterTheKeyWasDestroyed(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	keys := newKeys(t, b)
	st := files.NewSealed(b, keys)
	refer(t, st, messages.Ref{Tenant: "acme", Run: "r1"}, []byte("a"))
	if err := keys.Destroy(bustest.Context(t), "acme", "test"); err != nil {
		t.Fatal(err)
	}
	if err := keys.Renew(bustest.Context(t), "acme"); err != nil {
		t.Fatal(err)
	}
	put(t, st, "acme", []byte("b"))
	got, err := st.At(2*files.Margin).Collect(bustest.Context(t), false)
	if err != nil || got.Broken != 1 {
		t.Errorf("collected %+v, %v", got, err)
	}
}

// Files that were stored before they had to be encrypted are not read, and stay for a process that may read them.
func TestCollectBesideFilesInTheClear(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	plain := files.New(b)
	refer(t, plain, messages.Ref{Tenant: "acme", Run: "r1"}, []byte("a"))
	master, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	st := files.NewSealed(b, keyring.New(b, keyring.Config{Master: master, Required: true}))
	if _, err := st.At(2*files.Margin).Collect(bustest.Context(t), false); !errors.Is(err, record.ErrClear) {
		t.Errorf("got %v", err)
	}
	get(t, plain, "acme", []byte("a"))
}
