package memory_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	asked "github.com/longshore-run/longshore/dispatcher/service/memory"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/worker/memory/longterm/memstore"
	"github.com/longshore-run/longshore/worker/memory/longterm/served"
)

func ask[Reply any](t *testing.T, m *asked.Memory, subject string, request any) (reply Reply, err error) {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Handlers()[subject](t.Context(), body)
	if err != nil {
		return reply, err
	}
	return got.(Reply), nil
}

func opened(room int64) *asked.Memory {
	return asked.New(asked.Config{
		Store: served.New(memstore.New(memstore.Config{}), ""), Room: func() int64 { return room },
		Redact: func(s string) string { return strings.ReplaceAll(s, "planted-secret", "***") },
	})
}

// A list is as many pages as there are, each of which fits a message; no item is left out or told twice.
func TestPagesFitMessages(t *testing.T) {
	t.Parallel()
	const room, items = 50 << 10, 20
	m := opened(room)
	for i := range items {
		it := memory.Item{ID: fmt.Sprint("i", i), Text: strings.Repeat("a planted-secret ", 1500)}
		if _, err := ask[memory.PutReply](t, m, memory.SubjectPut, memory.PutRequest{Name: "c", Items: []memory.Item{it}}); err != nil {
			t.Fatal(err)
		}
	}
	seen, pages := map[string]bool{}, 0
	for r := (memory.ListRequest{Name: "c", Whole: true, Limit: items}); ; pages++ {
		page, err := ask[memory.Page](t, m, memory.SubjectList, r)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := json.Marshal(page); err != nil || len(data) > room {
			t.Errorf("a page has %d bytes, %v", len(data), err)
		}
		for _, it := range page.Items {
			if seen[it.ID] || it.Cut || len(it.Text) != 9000 || strings.Contains(it.Text, "planted") {
				t.Errorf("%s: %t, %t, %d bytes", it.ID, seen[it.ID], it.Cut, len(it.Text))
			}
			seen[it.ID] = true
		}
		if r.After = page.Next; r.After == "" {
			break
		}
	}
	if len(seen) != items || pages < 4 {
		t.Errorf("%d items in %d pages", len(seen), pages)
	}
	brief, err := ask[memory.Page](t, m, memory.SubjectList, memory.ListRequest{Name: "c"})
	if err != nil || len(brief.Items) != items || !brief.Items[0].Cut || len(brief.Items[0].Text) != memory.BriefText {
		t.Errorf("%d, %v", len(brief.Items), err)
	}
	found, err := ask[memory.Found](t, m, memory.SubjectSearch, memory.SearchRequest{Name: "c", Text: "a", TopK: items})
	if data, _ := json.Marshal(found); err != nil || len(data) > room || !found.More || len(found.Hits) == 0 {
		t.Errorf("%d hits, more %t, %d bytes, %v", len(found.Hits), found.More, len(data), err)
	}
	if _, err := ask[memory.Page](t, opened(room), memory.SubjectList, memory.ListRequest{Name: "c"}); err != nil {
		t.Errorf("an empty one: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	m := opened(1 << 20)
	for _, tc := range []struct {
		subject string
		request any
		field   string
	}{
		{memory.SubjectCollections, memory.CollectionsRequest{Tenant: "a.>"}, "tenant"},
		{memory.SubjectList, memory.ListRequest{}, "name"},
		{memory.SubjectList, memory.ListRequest{Name: "c", Limit: 1001}, "limit"},
		{memory.SubjectList, memory.ListRequest{Name: "c", Filter: memory.Filter{Subject: "a\nb"}}, "subject"},
		{memory.SubjectList, memory.ListRequest{Name: "c", After: strings.Repeat("a", 300)}, "after"},
		{memory.SubjectGet, memory.ItemRequest{Name: "c", ID: "a b"}, "id"},
		{memory.SubjectSearch, memory.SearchRequest{Name: "c"}, "text"},
		{memory.SubjectSearch, memory.SearchRequest{Name: "c", Text: strings.Repeat("a", memory.MaxQuestion+1)}, "text"},
		{memory.SubjectSearch, memory.SearchRequest{Name: "c", Text: "a", TopK: 101}, "topK"},
		{memory.SubjectPut, memory.PutRequest{Name: "c"}, "items"},
		{memory.SubjectPut, memory.PutRequest{Name: "c", Items: make([]memory.Item, memory.MaxPut+1)}, "items"},
		{memory.SubjectPut, memory.PutRequest{Name: "c", Items: []memory.Item{{ID: "a", Text: "a", Cut: true}}}, "items"},
		{memory.SubjectDelete, memory.DeleteRequest{Name: "c"}, "ids"},
		{memory.SubjectDelete, memory.DeleteRequest{Name: "c", IDs: []string{"ok", "a/b"}}, "ids[1]"},
	} {
		_, err := ask[any](t, m, tc.subject, tc.request)
		if f, ok := errors.AsType[*messages.FieldError](err); !ok || f.Field != tc.field {
			t.Errorf("%s %+v: %v, want one about %s", tc.subject, tc.request, err, tc.field)
		}
	}
	if _, err := ask[memory.Item](t, m, memory.SubjectGet, memory.ItemRequest{Name: "c", ID: "a"}); !errors.Is(err, control.ErrNoItem) {
		t.Errorf("an item that is not there: %v", err)
	}
	without := asked.New(asked.Config{})
	if _, err := ask[memory.Collections](t, without, memory.SubjectCollections, memory.CollectionsRequest{}); !errors.Is(err, control.ErrNoMemory) {
		t.Errorf("without a store: %v", err)
	}
}

// What clients write passes the rules as what models remember does: nothing that they keep out is stored, also not where items are found by it.
func TestRulesHoldForWrites(t *testing.T) {
	t.Parallel()
	m := asked.New(asked.Config{
		Store: served.New(memstore.New(memstore.Config{}), ""), Room: func() int64 { return 1 << 20 },
		Redact: func(s string) string { return strings.ReplaceAll(s, "planted-secret", "***") },
		Rules: func(tenant string) asked.Rule {
			return func(text string) (string, bool) {
				return strings.ReplaceAll(text, "bob@example.com", "[redacted]"), tenant != "dropping" && !strings.Contains(text, "blocked")
			}
		},
	})
	put := func(tenant string, it memory.Item) error {
		_, err := ask[memory.PutReply](t, m, memory.SubjectPut, memory.PutRequest{Tenant: tenant, Name: "c", Items: []memory.Item{{ID: "first", Text: "fine"}, it}})
		return err
	}
	err := put("acme", memory.Item{
		ID: "a", Text: "Ask bob@example.com for planted-secret.", Source: memory.Source{Document: "bob@example.com.md"}, Subject: "bob", Tags: []string{"t"}, Fields: map[string]any{"n": 1, "s": "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ask[memory.Item](t, m, memory.SubjectGet, memory.ItemRequest{Tenant: "acme", Name: "c", ID: "a"})
	if err != nil || got.Text != "Ask [redacted] for ***." || got.Source.Document != "[redacted].md" {
		t.Errorf("%+v, %v", got, err)
	}
	for field, it := range map[string]memory.Item{
		"items[1].text":            {ID: "b", Text: "blocked"},
		"items[1].source.document": {ID: "b", Source: memory.Source{Document: "blocked"}},
		"items[1].subject":         {ID: "b", Subject: "bob@example.com"},
		"items[1].tags[1]":         {ID: "b", Tags: []string{"fine", "planted-secret"}},
		"items[1].fields.mail":     {ID: "b", Fields: map[string]any{"mail": "bob@example.com"}},
	} {
		err := put("acme", it)
		if f, ok := errors.AsType[*messages.FieldError](err); !ok || f.Field != field || strings.Contains(f.Reason, "bob@") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := put("dropping", memory.Item{ID: "a", Text: "Ask."}); err == nil {
		t.Error("a memory that drops all has kept something")
	}
	if all, err := ask[memory.Page](t, m, memory.SubjectList, memory.ListRequest{Tenant: "dropping", Name: "c"}); err != nil || len(all.Items) != 0 {
		t.Errorf("%d items, %v", len(all.Items), err)
	}
}
