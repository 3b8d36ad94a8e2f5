package longterm_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/longtermtest"
	"github.com/longshore-run/longshore/worker/memory/longterm/memstore"
)

// gcm is a Sealer with a key of its own for each tenant. What it has sealed begins with 0xff, as no text does.
type gcm struct{ secret []byte }

func (g gcm) aead(tenant string) cipher.AEAD {
	key := sha256.Sum256(append([]byte(tenant), g.secret...))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead
}

func (g gcm) Seal(_ context.Context, tenant string, plain, bound []byte) ([]byte, error) {
	nonce := make([]byte, 12)
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return append([]byte{0xff}, g.aead(tenant).Seal(nonce, nonce, plain, bound)...), nil
}

func (g gcm) Open(_ context.Context, tenant string, sealed, bound []byte) ([]byte, error) {
	if len(sealed) < 13 || sealed[0] != 0xff {
		return sealed, nil
	}
	return g.aead(tenant).Open(nil, sealed[1:13], sealed[13:], bound)
}

func TestSealedConformance(t *testing.T) {
	t.Parallel()
	longtermtest.Run(t, func(_ *testing.T, o longtermtest.Options) longterm.Store {
		return longterm.Sealed(memstore.New(memstore.Config{Limits: o.Limits, Now: o.Now}), gcm{[]byte("k")})
	})
}

func TestWhatASealedStoreSees(t *testing.T) {
	below := memstore.New(memstore.Config{})
	s, at := longterm.Sealed(below, gcm{[]byte("k")}), longtermtest.Place("c")
	it := longterm.Item{
		ID: "a", Text: "PLANTED text", Source: longterm.Source{Run: "r", Document: "PLANTED.md"}, Vector: []float32{1, 2}, Model: "m",
		Scope: longterm.Scope{Subject: "jo"}, Tags: []string{"t"}, Fields: longterm.Fields{"f": 1.5}, Created: longtermtest.At(1),
	}
	if err := s.Write(t.Context(), at, []longterm.Item{it}); err != nil {
		t.Fatal(err)
	}
	got, err := below.Read(t.Context(), at, []string{"a"})
	if err != nil || len(got) != 1 || len(got[0].Sealed) == 0 || strings.Contains(fmt.Sprintf("%+v %s", got, got[0].Sealed), "PLANTED") {
		t.Fatalf("%+v, %v", got, err)
	}
	seen := got[0]
	seen.Sealed = nil
	want := it
	want.Text, want.Source, want.Vector = "", longterm.Source{}, nil
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if got, err = s.Read(t.Context(), at, []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]longterm.Item{it}, got); diff != "" {
		t.Error(diff)
	}
	moved := seen
	moved.ID, moved.Sealed = "b", nil
	if all, err := below.Read(t.Context(), at, []string{"a"}); err == nil {
		moved.Sealed = all[0].Sealed
	}
	if err := below.Write(t.Context(), at, []longterm.Item{moved}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), at, []string{"b"}); err == nil {
		t.Error("a value that was moved to another id was opened")
	}
	if _, err := s.Search(t.Context(), at, longterm.Search{Text: "planted"}); err == nil {
		t.Error("a search read past a value that cannot be opened")
	}
}

// broken opens and seals nothing while it has an error.
type broken struct {
	gcm

	err error
}

func (b *broken) Seal(ctx context.Context, tenant string, plain, bound []byte) ([]byte, error) {
	sealed, err := b.gcm.Seal(ctx, tenant, plain, bound)
	return sealed, errors.Join(err, b.err)
}

func (b *broken) Open(ctx context.Context, tenant string, sealed, bound []byte) ([]byte, error) {
	if b.err != nil && bytes.Contains(bound, []byte("gone")) {
		return nil, b.err
	}
	return b.gcm.Open(ctx, tenant, sealed, bound)
}

// What was written without a sealer is read, unless the sealer refuses it, as with LONGSHORE_ENCRYPTION=required.
func TestSealedReadsWhatIsClear(t *testing.T) {
	below, by, at := memstore.New(memstore.Config{}), &broken{gcm: gcm{[]byte("k")}}, longtermtest.Place("c")
	if err := below.Write(t.Context(), at, []longterm.Item{{ID: "gone", Text: "an anchor"}}); err != nil {
		t.Fatal(err)
	}
	s := longterm.Sealed(below, by)
	for name, tc := range map[string]struct {
		refusal error
		hits    int
	}{"read": {nil, 1}, "refused": {record.ErrUnreadable, 0}} {
		by.err = tc.refusal
		found, err := s.Search(t.Context(), at, longterm.Search{Text: "anchor"})
		if err != nil || len(found.Hits) != tc.hits || (found.Degraded != "") != (tc.refusal != nil) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
		if _, err := s.Read(t.Context(), at, []string{"gone"}); !errors.Is(err, tc.refusal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What was sealed with a key that was destroyed is in no answer and keeps no other text from being found. While keys cannot be read, the same
// call may succeed later.
func TestSealedWithoutAKey(t *testing.T) {
	by := &broken{gcm: gcm{[]byte("k")}}
	s, at := longterm.Sealed(memstore.New(memstore.Config{}), by), longtermtest.Place("c")
	if err := s.Write(t.Context(), at, []longterm.Item{{ID: "gone", Text: "an anchor"}, {ID: "kept", Text: "anchor"}}); err != nil {
		t.Fatal(err)
	}
	by.err = fmt.Errorf("destroyed: %w", record.ErrUnreadable)
	found, err := s.Search(t.Context(), at, longterm.Search{Text: "anchor"})
	if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != "kept" || !strings.HasPrefix(found.Degraded, "items that cannot be read were left out (1)") {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := s.Read(t.Context(), at, []string{"gone"}); !errors.Is(err, record.ErrUnreadable) || errors.Is(err, longterm.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	by.err = context.DeadlineExceeded
	if _, err := s.Search(t.Context(), at, longterm.Search{Text: "anchor"}); !errors.Is(err, longterm.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if err := s.Write(t.Context(), at, []longterm.Item{{ID: "new", Text: "x"}}); !errors.Is(err, longterm.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

func TestSealedSearchIsBounded(t *testing.T) {
	s, at := longterm.Sealed(memstore.New(memstore.Config{}), gcm{[]byte("k")}), longtermtest.Place("c")
	items := make([]longterm.Item, longterm.MaxBatch)
	for n := 0; n <= longterm.MaxSealedScan; n += len(items) {
		for i := range items {
			items[i] = longterm.Item{ID: fmt.Sprint("i", n+i), Text: "an anchor", Scope: longterm.Scope{Session: fmt.Sprint("s", n)}}
		}
		if err := s.Write(t.Context(), at, items); err != nil {
			t.Fatal(err)
		}
	}
	var tooMany *longterm.TooManyError
	if _, err := s.Search(t.Context(), at, longterm.Search{Text: "anchor"}); !errors.As(err, &tooMany) || tooMany.Max != longterm.MaxSealedScan {
		t.Errorf("%v", err)
	}
	found, err := s.Search(t.Context(), at, longterm.Search{Text: "anchor", Filter: longterm.Filter{Within: longterm.Scope{Session: "s0"}}})
	if err != nil || len(found.Hits) != 10 {
		t.Errorf("%d hits, %v", len(found.Hits), err)
	}
}

// letters embeds a text by whether it has an a and a b.
type letters struct {
	fail  error
	texts [][]string
}

func (l *letters) Embed(_ context.Context, texts []string) ([][]float32, error) {
	l.texts = append(l.texts, texts)
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = []float32{float32(strings.Count(text, "a")), float32(strings.Count(text, "b")), 0.1}
	}
	return out, l.fail
}

func (*letters) Dimensions() int { return 3 }
func (*letters) Model() string   { return "letters" }

func TestEmbedded(t *testing.T) {
	by := &letters{}
	s, at := longterm.Embedded(memstore.New(memstore.Config{}), by), longtermtest.Place("c")
	items := []longterm.Item{{ID: "a", Text: "aaa"}, {ID: "b", Text: "bbb"}, {ID: "own", Text: "aaa", Vector: []float32{1}, Model: "other"}, {ID: "none"}}
	if err := s.Write(t.Context(), at, items); err != nil {
		t.Fatal(err)
	}
	if items[0].Vector != nil {
		t.Error("the caller's items were changed")
	}
	if diff := cmp.Diff([][]string{{"aaa", "bbb"}}, by.texts); diff != "" {
		t.Error(diff)
	}
	found, err := s.Search(t.Context(), at, longterm.Search{Text: "aa"})
	if err != nil || len(found.Hits) == 0 || found.Hits[0].ID != "a" || found.Degraded != "" {
		t.Errorf("%+v, %v", found, err)
	}
	by.fail = errors.New("the provider is away")
	if err := s.Write(t.Context(), at, []longterm.Item{{ID: "later", Text: "a"}}); !errors.Is(err, by.fail) || !errors.Is(err, longterm.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	found, err = s.Search(t.Context(), at, longterm.Search{Text: "bbb"})
	if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != "b" || !strings.Contains(found.Degraded, "the provider is away") {
		t.Errorf("%+v, %v", found, err)
	}
	n := len(by.texts)
	if err := s.Write(t.Context(), at, []longterm.Item{{ID: "a b", Text: "secret"}}); err == nil || len(by.texts) != n {
		t.Errorf("%v: what is refused was sent to the provider", err)
	}
}

// stuck answers when the call is given up.
type stuck struct{ letters }

func (*stuck) Embed(ctx context.Context, _ []string) ([][]float32, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// A search whose embedder does not answer finds by words before a call of a tool has to end.
func TestSearchDoesNotWaitForAnEmbedder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := longterm.Embedded(memstore.New(memstore.Config{}), &stuck{}), longtermtest.Place("c")
		if err := s.Write(t.Context(), at, []longterm.Item{{ID: "a", Text: "anchor", Vector: []float32{1}, Model: "m"}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		found, err := s.Search(ctx, at, longterm.Search{Text: "anchor"})
		if err != nil || len(found.Hits) != 1 || found.Degraded != "only words were looked for: no vector came within 10s" {
			t.Errorf("%+v, %v", found, err)
		}
	})
}
