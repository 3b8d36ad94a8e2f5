package files_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/nats-io/nats.go"

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
