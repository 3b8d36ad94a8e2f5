package served_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/worker/memory/embedding"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/memstore"
	"github.com/longshore-run/longshore/worker/memory/longterm/served"
)

// counted counts the texts that are given a vector.
type counted struct {
	longterm.Embedder

	texts int
}

func (c *counted) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	c.texts += len(texts)
	return c.Embedder.Embed(ctx, texts)
}

func put(t *testing.T, s *served.Store, items ...memory.Item) memory.PutReply {
	t.Helper()
	reply, err := s.Put(t.Context(), &memory.PutRequest{Tenant: "acme", Name: "docs", Items: items})
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// A write again changes nothing, and costs no vector; nor does one that changes something beside the text.
func TestPutAgain(t *testing.T) {
	t.Parallel()
	by := &counted{Embedder: embedding.NewScripted()}
	below := memstore.New(memstore.Config{})
	s := served.New(longterm.Embedded(below, by), by.Model())
	a := memory.Item{ID: "a", Text: "Berth 7 is closed.", Tags: []string{"y", "x"}, Fields: map[string]any{"n": 1}, Source: memory.Source{Document: "m.md", Part: 1}}
	b := memory.Item{ID: "b", Text: "Crane 2 lifts 40 tons."}
	if got := put(t, s, a, b); got != (memory.PutReply{Written: 2}) || by.texts != 2 {
		t.Errorf("%+v, %d texts", got, by.texts)
	}
	first, err := s.Get(t.Context(), "acme", "docs", []string{"a"})
	if err != nil || len(first) != 1 || first[0].Model != by.Model() {
		t.Fatalf("%+v, %v", first, err)
	}
	if got := put(t, s, a, b); got != (memory.PutReply{Unchanged: 2}) || by.texts != 2 {
		t.Errorf("again: %+v, %d texts", got, by.texts)
	}
	a.Source.Part = 2
	if got := put(t, s, a, b); got != (memory.PutReply{Written: 1, Unchanged: 1}) || by.texts != 2 {
		t.Errorf("moved: %+v, %d texts", got, by.texts)
	}
	kept, err := below.Read(t.Context(), longterm.Place{Tenant: "acme", Collection: "docs"}, []string{"a"})
	if err != nil || len(kept) != 1 || len(kept[0].Vector) == 0 || kept[0].Source.Position != 2 {
		t.Errorf("moved: %+v, %v", kept, err)
	}
	a.Text = "Berth 7 is open."
	if got := put(t, s, a); got != (memory.PutReply{Written: 1}) || by.texts != 3 {
		t.Errorf("changed: %+v, %d texts", got, by.texts)
	}
	other := served.New(below, "another-model")
	if got := put(t, other, b); got != (memory.PutReply{Written: 1}) {
		t.Errorf("a text with the vector of another model: %+v", got)
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	s := served.New(memstore.New(memstore.Config{}), "")
	put(t, s, memory.Item{ID: "a", Text: "Berth 7 is closed.", Subject: "berth-7"}, memory.Item{ID: "b", Text: "Crane 2 lifts 40 tons.", Tags: []string{"cranes"}})
	all, err := s.Collections(t.Context(), "acme")
	if err != nil || len(all.Collections) != 1 || all.Collections[0].Items != 2 || all.Items != 2 || all.Bytes == 0 {
		t.Errorf("%+v, %v", all, err)
	}
	page, err := s.List(t.Context(), &memory.ListRequest{Tenant: "acme", Name: "docs", Limit: 10, Filter: memory.Filter{Subject: "berth-7"}})
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != "a" || page.Next != "" {
		t.Errorf("%+v, %v", page, err)
	}
	found, err := s.Search(t.Context(), &memory.SearchRequest{Tenant: "acme", Name: "docs", Text: "crane", TopK: 5, Filter: memory.Filter{Tags: []string{"cranes"}}})
	if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != "b" || found.Hits[0].Score <= 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if other, err := s.Get(t.Context(), "other", "docs", []string{"a"}); err != nil || len(other) != 0 {
		t.Errorf("of another tenant: %+v, %v", other, err)
	}
	if n, err := s.Delete(t.Context(), "acme", "docs", []string{"a", "gone"}); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	_, err = s.List(t.Context(), &memory.ListRequest{Tenant: "acme", Name: "docs", Limit: 10, After: "nonsense"})
	if f, ok := errors.AsType[*messages.FieldError](err); !ok || f.Field != "after" {
		t.Errorf("%v", err)
	}
}

// failing fails as stores do.
type failing struct {
	longterm.Store

	err error
}

func (f failing) Read(context.Context, longterm.Place, []string) ([]longterm.Item, error) {
	return nil, f.err
}

func TestWhatAStoreCannotDo(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ is, want error }{
		{longterm.ErrUnavailable, control.ErrMemoryAway},
		{longterm.ErrStorageFull, control.ErrMemoryAway},
		{&longterm.QuotaError{Tenant: "acme", What: "items", Limit: 1, Would: 2}, control.ErrMemoryFull},
	} {
		_, err := served.New(failing{err: tc.is}, "").Get(t.Context(), "acme", "docs", []string{"a"})
		if !errors.Is(err, tc.want) {
			t.Errorf("%v: %v", tc.is, err)
		}
	}
	_, err := served.New(failing{err: errors.New("postgres://user:secret@host")}, "").Get(t.Context(), "acme", "docs", []string{"a"})
	if diff := cmp.Diff("postgres://user:secret@host", err.Error()); diff != "" {
		t.Error(diff) // it has no meaning to callers, and the dispatcher shows none of it
	}
}
