// Package longtermtest checks that a store keeps the promises of [longterm.Store]: call [Run] with a way to open one.
package longtermtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// Options are what a test may ask of a store.
type Options struct {
	Limits longterm.Limits
	Now    func() time.Time
}

// Open opens an empty store, which ends with the test.
type Open func(*testing.T, Options) longterm.Store

// Run runs the suite. Each test opens a store of its own. What a store can do it says in its Features: the suite holds it to that.
func Run(t *testing.T, open Open) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Open){
		"what is written is read":        testRoundTrip,
		"a write is idempotent":          testIdempotent,
		"tenants and collections":        testPlaces,
		"a write is whole or not at all": testWhole,
		"query by filter":                testFilter,
		"ranges":                         testRanges,
		"pages":                          testPages,
		"a cursor is of its query":       testCursor,
		"search for words":               testWords,
		"search by vector":               testVectors,
		"search by both":                 testBoth,
		"search within a filter":         testSearchFilter,
		"delete":                         testDelete,
		"items expire":                   testExpiry,
		"quota of a tenant":              testQuota,
		"statistics":                     testStats,
		"odd texts":                      testOddTexts,
		"hostile searches":               testHostileSearches,
		"inputs that are refused":        testRefused,
		"the context has ended":          testEnded,
		"many at once":                   testConcurrent,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

// Place is where the suite writes.
func Place(collection string) longterm.Place {
	return longterm.Place{Tenant: "acme", Collection: collection}
}

// At is a time of a test: so many minutes after its beginning.
func At(minutes int) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(minutes) * time.Minute)
}

func write(t *testing.T, s longterm.Store, at longterm.Place, items ...longterm.Item) {
	t.Helper()
	if err := s.Write(t.Context(), at, items); err != nil {
		t.Fatal(err)
	}
}

// query is the ids of all pages of a query.
func query(t *testing.T, s longterm.Store, at longterm.Place, q longterm.Query) []string {
	t.Helper()
	ids := []string{}
	for {
		page, err := s.Query(t.Context(), at, q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Items {
			ids = append(ids, page.Items[i].ID)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return ids
		}
	}
}

func search(t *testing.T, s longterm.Store, at longterm.Place, q longterm.Search) []string {
	t.Helper()
	found, err := s.Search(t.Context(), at, q)
	if err != nil {
		t.Fatal(err)
	}
	if found.Degraded != "" {
		t.Errorf("degraded: %s", found.Degraded)
	}
	ids := []string{}
	last := 0.0
	for i := range found.Hits {
		h := &found.Hits[i]
		ids = append(ids, h.ID)
		if h.Score <= 0 || i > 0 && h.Score > last {
			t.Errorf("the score of %s is %v after %v", h.ID, h.Score, last)
		}
		last = h.Score
	}
	return ids
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func full() longterm.Item {
	return longterm.Item{
		ID: "full", Scope: longterm.Scope{Agent: "a", Session: "s", Subject: "jo@example.com"}, Text: "a text",
		Fields: longterm.Fields{"name": "O'Brien", "n": 1.5, "yes": true, "no": false, "when": "2026-03-01T12:00:00Z", "": nil},
		Tags:   []string{"b", "a"}, Created: At(1), Expires: time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond),
		Source: longterm.Source{Run: "run-1", Step: 3, Document: "a file.md", Position: 7},
		Vector: []float32{0.25, -1, 1e-7}, Model: "m",
	}
}

func testRoundTrip(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	it := full()
	delete(it.Fields, "")
	bare := longterm.Item{ID: "bare"}
	before := time.Now()
	write(t, s, at, it, bare)
	got, err := s.Read(t.Context(), at, []string{"bare", "none", "full"})
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if c := got[0].Created; c.Before(before.Add(-time.Minute)) || c.After(time.Now().Add(time.Minute)) {
		t.Errorf("created %v, want about %v", c, before)
	}
	got[0].Created = time.Time{}
	it.Tags = []string{"a", "b"}
	if diff := cmp.Diff([]longterm.Item{bare, it}, got); diff != "" {
		t.Error(diff)
	}
	page, err := s.Query(t.Context(), at, longterm.Query{Filter: longterm.Filter{Within: longterm.Scope{Agent: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]longterm.Item{it}, page.Items); diff != "" {
		t.Error(diff)
	}
}

func testIdempotent(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	one := longterm.Item{ID: "one", Text: "the harbour is closed", Tags: []string{"x"}, Fields: longterm.Fields{"n": 1}, Created: At(0), Vector: []float32{1, 0}}
	write(t, s, at, one)
	before, err := s.Stats(t.Context(), at.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, at, one, one)
	after, err := s.Stats(t.Context(), at.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" || after.Items != 1 || after.Bytes == 0 {
		t.Errorf("%+v: %s", after, diff)
	}
	one.Text, one.Tags, one.Fields, one.Vector = "the warehouse is open", nil, longterm.Fields{"n": 2}, []float32{0, 1}
	write(t, s, at, one)
	same(t, "old words", search(t, s, at, longterm.Search{Text: "harbour"}), []string{})
	same(t, "new words", search(t, s, at, longterm.Search{Text: "warehouse"}), []string{"one"})
	same(t, "old vector", search(t, s, at, longterm.Search{Vector: []float32{1, 0}}), []string{})
	same(t, "old tag", query(t, s, at, longterm.Query{Filter: longterm.Filter{Tags: []string{"x"}}}), []string{})
	same(t, "old field", query(t, s, at, longterm.Query{Filter: longterm.Filter{Equal: map[string]any{"n": 1}}}), []string{})
	same(t, "new field", query(t, s, at, longterm.Query{Filter: longterm.Filter{Equal: map[string]any{"n": 2}}}), []string{"one"})
}

func testPlaces(t *testing.T, open Open) {
	s := open(t, Options{})
	places := []longterm.Place{{Tenant: "acme", Collection: "c"}, {Tenant: "acme", Collection: "d"}, {Tenant: "acme-c", Collection: "c"}, {Tenant: "ACME", Collection: "c"}}
	for i, at := range places {
		write(t, s, at, longterm.Item{ID: "same", Text: fmt.Sprintf("the anchor of place%d", i), Scope: longterm.Scope{Subject: "jo"}, Vector: []float32{1, 1}})
	}
	for i, at := range places {
		items, err := s.Read(t.Context(), at, []string{"same"})
		if err != nil || len(items) != 1 || items[0].Text != fmt.Sprintf("the anchor of place%d", i) {
			t.Errorf("%v: %+v, %v", at, items, err)
		}
		same(t, "query", query(t, s, at, longterm.Query{}), []string{"same"})
		for j := range places {
			want := []string{}
			if i == j {
				want = []string{"same"}
			}
			same(t, fmt.Sprintf("words of place %d in %d", j, i), search(t, s, at, longterm.Search{Text: fmt.Sprintf("place%d", j)}), want)
		}
		same(t, "vectors", search(t, s, at, longterm.Search{Vector: []float32{1, 1}}), []string{"same"})
	}
	n, err := s.Delete(t.Context(), longterm.Place{Tenant: "acme"}, longterm.Deletion{Filter: longterm.Filter{Within: longterm.Scope{Subject: "jo"}}})
	if err != nil || n != 2 {
		t.Errorf("deleted %d, %v", n, err)
	}
	for i, at := range places {
		want := []string{"same"}
		if i < 2 {
			want = []string{}
		}
		same(t, fmt.Sprint(at), query(t, s, at, longterm.Query{}), want)
	}
}

func testWhole(t *testing.T, open Open) {
	s, at := open(t, Options{Limits: longterm.Limits{Items: 3}}), Place("c")
	write(t, s, at, longterm.Item{ID: "a"}, longterm.Item{ID: "b"})
	var quota *longterm.QuotaError
	if err := s.Write(t.Context(), at, []longterm.Item{{ID: "a", Text: "changed"}, {ID: "c"}, {ID: "d"}}); !errors.As(err, &quota) {
		t.Fatalf("%v", err)
	}
	var field *messages.FieldError
	if err := s.Write(t.Context(), at, []longterm.Item{{ID: "a", Text: "changed"}, {ID: "a b"}}); !errors.As(err, &field) || field.Field != "items[1].id" {
		t.Fatalf("%v", err)
	}
	items, err := s.Read(t.Context(), at, []string{"a", "c", "d"})
	if err != nil || len(items) != 1 || items[0].Text != "" {
		t.Errorf("%+v, %v", items, err)
	}
}

func testFilter(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	write(t, s, at,
		longterm.Item{ID: "all", Created: At(5)},
		longterm.Item{ID: "agent", Created: At(4), Scope: longterm.Scope{Agent: "x"}, Tags: []string{"red", "blue"}, Fields: longterm.Fields{"k": "1"}},
		longterm.Item{ID: "other", Created: At(3), Scope: longterm.Scope{Agent: "y"}, Tags: []string{"red"}, Fields: longterm.Fields{"k": 1}},
		longterm.Item{ID: "session", Created: At(2), Scope: longterm.Scope{Agent: "x", Session: "s"}, Fields: longterm.Fields{"k": true, "__proto__": "p"}},
		longterm.Item{ID: "subject", Created: At(1), Scope: longterm.Scope{Subject: "jo%"}, Fields: longterm.Fields{"k": "true"}},
	)
	for name, tt := range map[string]struct {
		f    longterm.Filter
		want []string
	}{
		"none":                 {longterm.Filter{}, []string{"all", "agent", "other", "session", "subject"}},
		"of an agent":          {longterm.Filter{Within: longterm.Scope{Agent: "x"}}, []string{"agent", "session"}},
		"of a session":         {longterm.Filter{Within: longterm.Scope{Agent: "x", Session: "s"}}, []string{"session"}},
		"of a subject":         {longterm.Filter{Within: longterm.Scope{Subject: "jo%"}}, []string{"subject"}},
		"a subject as pattern": {longterm.Filter{Within: longterm.Scope{Subject: "j%"}}, []string{}},
		"visible to no one":    {longterm.Filter{VisibleTo: &longterm.Scope{}}, []string{"all"}},
		"visible to an agent":  {longterm.Filter{VisibleTo: &longterm.Scope{Agent: "x"}}, []string{"all", "agent"}},
		"visible in a session": {longterm.Filter{VisibleTo: &longterm.Scope{Agent: "x", Session: "s", Subject: "jo%"}}, []string{"all", "agent", "session", "subject"}},
		"a tag":                {longterm.Filter{Tags: []string{"red"}}, []string{"agent", "other"}},
		"two tags":             {longterm.Filter{Tags: []string{"red", "blue"}}, []string{"agent"}},
		"a part of a tag":      {longterm.Filter{Tags: []string{"re"}}, []string{}},
		"a string":             {longterm.Filter{Equal: map[string]any{"k": "1"}}, []string{"agent"}},
		"a number":             {longterm.Filter{Equal: map[string]any{"k": 1.0}}, []string{"other"}},
		"true":                 {longterm.Filter{Equal: map[string]any{"k": true}}, []string{"session"}},
		"the string true":      {longterm.Filter{Equal: map[string]any{"k": "true"}}, []string{"subject"}},
		"two fields":           {longterm.Filter{Equal: map[string]any{"k": true, "__proto__": "p"}}, []string{"session"}},
		"a field of no item":   {longterm.Filter{Equal: map[string]any{"constructor": "p"}}, []string{}},
		"times":                {longterm.Filter{CreatedFrom: At(2), CreatedTo: At(4)}, []string{"other", "session"}},
		"all at once":          {longterm.Filter{Within: longterm.Scope{Agent: "x"}, Tags: []string{"blue"}, Equal: map[string]any{"k": "1"}, CreatedFrom: At(4)}, []string{"agent"}},
	} {
		same(t, name, query(t, s, at, longterm.Query{Filter: tt.f}), tt.want)
	}
}

func testRanges(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	write(t, s, at,
		longterm.Item{ID: "small", Created: At(4), Fields: longterm.Fields{"n": -2.5, "t": "2026-01-01T00:00:00Z"}},
		longterm.Item{ID: "zero", Created: At(3), Fields: longterm.Fields{"n": 0, "t": "2026-01-01T02:00:00+02:00"}},
		longterm.Item{ID: "large", Created: At(2), Fields: longterm.Fields{"n": 1e15, "t": "2026-06-01T00:00:00.5Z"}},
		longterm.Item{ID: "text", Created: At(1), Fields: longterm.Fields{"n": "5", "t": "June"}},
		longterm.Item{ID: "bare"},
	)
	for name, tt := range map[string]struct {
		r    longterm.Range
		want []string
	}{
		"from":        {longterm.Range{Field: "n", From: 0}, []string{"zero", "large"}},
		"to":          {longterm.Range{Field: "n", To: 0}, []string{"small"}},
		"both":        {longterm.Range{Field: "n", From: -3, To: int64(1e15)}, []string{"small", "zero"}},
		"nothing":     {longterm.Range{Field: "n", From: 1, To: 2}, []string{}},
		"from a time": {longterm.Range{Field: "t", From: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}, []string{"large"}},
		"to a time":   {longterm.Range{Field: "t", To: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}, []string{"small", "zero"}},
	} {
		same(t, name, query(t, s, at, longterm.Query{Filter: longterm.Filter{Ranges: []longterm.Range{tt.r}}}), tt.want)
	}
}

func testPages(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	var items []longterm.Item
	var want []string
	for i := range 25 {
		items = append(items, longterm.Item{ID: fmt.Sprintf("i%02d", i), Created: At(i / 4), Fields: longterm.Fields{"odd": i % 2}})
	}
	slices.SortFunc(items, func(a, b longterm.Item) int { return longterm.Compare(&a, &b) })
	for i := range items {
		want = append(want, items[i].ID)
	}
	if want[0] != "i24" || want[1] != "i23" {
		t.Fatalf("the order is %v", want)
	}
	write(t, s, at, items...)
	for _, limit := range []int{1, 7, 25, 26} {
		same(t, strconv.Itoa(limit), query(t, s, at, longterm.Query{Limit: limit}), want)
	}
	page, err := s.Query(t.Context(), at, longterm.Query{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, at, longterm.Item{ID: "new", Created: At(100)}) // belongs to a page that was read
	if _, err := s.Delete(t.Context(), at, longterm.Deletion{IDs: []string{want[9]}}); err != nil {
		t.Fatal(err)
	}
	same(t, "the rest", query(t, s, at, longterm.Query{Limit: 10, Cursor: page.Next}), want[10:])
}

func testCursor(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	write(t, s, at, longterm.Item{ID: "a"}, longterm.Item{ID: "b"}, longterm.Item{ID: "c"})
	page, err := s.Query(t.Context(), at, longterm.Query{Limit: 1})
	if err != nil || page.Next == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	for name, tt := range map[string]struct {
		at longterm.Place
		q  longterm.Query
	}{
		"another filter":     {at, longterm.Query{Cursor: page.Next, Filter: longterm.Filter{Tags: []string{"x"}}}},
		"another collection": {Place("d"), longterm.Query{Cursor: page.Next}},
		"another tenant":     {longterm.Place{Tenant: "other", Collection: "c"}, longterm.Query{Cursor: page.Next}},
		"no cursor":          {at, longterm.Query{Cursor: "' OR 1=1 --"}},
		"a part of one":      {at, longterm.Query{Cursor: page.Next[:8]}},
		"a long one":         {at, longterm.Query{Cursor: strings.Repeat("A", 1<<20)}},
	} {
		var field *messages.FieldError
		if _, err := s.Query(t.Context(), tt.at, tt.q); !errors.As(err, &field) || field.Field != "cursor" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func testWords(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	write(t, s, at,
		longterm.Item{ID: "crane", Text: "The crane on pier seven lifts forty tonnes."},
		longterm.Item{ID: "cranes", Text: "All cranes are inspected in March; a crane that fails is stopped."},
		longterm.Item{ID: "tug", Text: "Two tugs pull the ferry out of the basin."},
		longterm.Item{ID: "umlaut", Text: "Die Überfahrt nach Århus dauert sechs Stunden."},
		longterm.Item{ID: "number", Text: "Invoice 4711-B was paid on Friday."},
		longterm.Item{ID: "empty"},
	)
	for text, want := range map[string][]string{
		"tugs":                            {"tug"},
		"TUG":                             {"tug"},
		"Which tug pulled the ferry?":     {"tug"},
		"überfahrt":                       {"umlaut"},
		"4711":                            {"number"},
		"was invoice 4711-B paid?":        {"number"},
		"zeppelin":                        {},
		"seven forty tonnes zeppelin":     {"crane"},
		"?!":                              {},
		strings.Repeat("zeppelin ", 1000): {},
	} {
		same(t, text[:min(len(text), 40)], search(t, s, at, longterm.Search{Text: text}), want)
	}
	got := search(t, s, at, longterm.Search{Text: "cranes inspected in march"})
	if len(got) != 2 || got[0] != "cranes" {
		t.Errorf("got %v, want cranes and then crane", got)
	}
	if got := search(t, s, at, longterm.Search{Text: "crane", TopK: 1}); len(got) != 1 {
		t.Errorf("got %v, want one", got)
	}
}

func testVectors(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	write(t, s, at,
		longterm.Item{ID: "east", Vector: []float32{1, 0}, Model: "m"},
		longterm.Item{ID: "northeast", Vector: []float32{50, 50}, Model: "m"},
		longterm.Item{ID: "west", Vector: []float32{-1, 0}, Model: "m"},
		longterm.Item{ID: "other", Vector: []float32{1, 0}, Model: "n"},
		longterm.Item{ID: "long", Vector: []float32{1, 0, 0}, Model: "m"},
		longterm.Item{ID: "none"},
	)
	same(t, "east", search(t, s, at, longterm.Search{Vector: []float32{3, 0}, Model: "m"}), []string{"east", "northeast"})
	same(t, "north", search(t, s, at, longterm.Search{Vector: []float32{-0.1, 1}, Model: "m"}), []string{"northeast", "west"})
	same(t, "of another model", search(t, s, at, longterm.Search{Vector: []float32{3, 0}, Model: "n"}), []string{"other"})
	same(t, "of no model", search(t, s, at, longterm.Search{Vector: []float32{3, 0}}), []string{})
	widest := make([]float32, longterm.MaxDimensions)
	widest[len(widest)-1] = 1
	write(t, s, at, longterm.Item{ID: "widest", Vector: widest, Model: "m"})
	same(t, "the longest", search(t, s, at, longterm.Search{Vector: widest, Model: "m"}), []string{"widest"})
}

func testBoth(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	write(t, s, at,
		longterm.Item{ID: "both", Text: "the lighthouse", Vector: []float32{1, 0.1}},
		longterm.Item{ID: "words", Text: "a lighthouse keeper", Vector: []float32{-1, 0}},
		longterm.Item{ID: "meaning", Text: "a beacon", Vector: []float32{1, 0.2}},
		longterm.Item{ID: "neither", Text: "a crate", Vector: []float32{-1, 0}},
	)
	got := search(t, s, at, longterm.Search{Text: "lighthouse", Vector: []float32{1, 0}})
	if len(got) != 3 || got[0] != "both" || slices.Contains(got, "neither") {
		t.Errorf("got %v, want both first, then words and meaning", got)
	}
}

func testSearchFilter(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	var items []longterm.Item
	for i := range 300 { // better ones than those that pass
		items = append(items, longterm.Item{ID: fmt.Sprintf("hidden%d", i), Text: "anchor by anchor", Vector: []float32{1, 0}, Scope: longterm.Scope{Agent: "other"}})
	}
	items = append(items,
		longterm.Item{ID: "seen", Text: "an anchor among many other things that are in the text", Vector: []float32{1, 0.9}, Scope: longterm.Scope{Agent: "me"}, Tags: []string{"x"}, Fields: longterm.Fields{"n": 3}, Created: At(1)},
		longterm.Item{ID: "shared", Text: "an anchor", Vector: []float32{1, 0.8}})
	write(t, s, at, items...)
	mine := longterm.Filter{VisibleTo: &longterm.Scope{Agent: "me"}}
	for name, q := range map[string]longterm.Search{
		"words": {Text: "anchor", Filter: mine}, "vector": {Vector: []float32{1, 0}, Filter: mine},
		"both": {Text: "anchor", Vector: []float32{1, 0}, Filter: mine},
	} {
		same(t, name, search(t, s, at, q), []string{"shared", "seen"})
		q.Filter = longterm.Filter{Tags: []string{"x"}, Equal: map[string]any{"n": 3}, Ranges: []longterm.Range{{Field: "n", From: 3}}, CreatedTo: At(2)}
		same(t, name+" of a narrow filter", search(t, s, at, q), []string{"seen"})
	}
}

func testDelete(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	var items []longterm.Item
	for i := range 5 {
		items = append(items, longterm.Item{ID: strconv.Itoa(i), Text: "the anchor", Vector: []float32{1, 0}, Scope: longterm.Scope{Session: fmt.Sprint("s", i%2)}, Fields: longterm.Fields{"n": i}})
	}
	write(t, s, at, items...)
	remove := func(d longterm.Deletion, want int) {
		t.Helper()
		for _, want := range []int{want, 0} { // again
			if n, err := s.Delete(t.Context(), at, d); err != nil || n != want {
				t.Errorf("%+v: %d, %v, want %d", d, n, err, want)
			}
		}
	}
	remove(longterm.Deletion{IDs: []string{"0", "none"}}, 1)
	same(t, "by id", query(t, s, at, longterm.Query{}), []string{"4", "3", "2", "1"})
	remove(longterm.Deletion{Filter: longterm.Filter{Within: longterm.Scope{Session: "s1"}}}, 2)
	same(t, "by session", query(t, s, at, longterm.Query{}), []string{"4", "2"})
	remove(longterm.Deletion{Filter: longterm.Filter{Equal: map[string]any{"n": 2}}}, 1)
	same(t, "words", search(t, s, at, longterm.Search{Text: "anchor"}), []string{"4"})
	same(t, "vectors", search(t, s, at, longterm.Search{Vector: []float32{1, 0}}), []string{"4"})
	remove(longterm.Deletion{All: true}, 1)
	if st, err := s.Stats(t.Context(), at.Tenant); err != nil || st.Items != 0 || st.Bytes != 0 || len(st.Collections) != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	many := make([]longterm.Item, longterm.MaxBatch)
	for round := range 3 {
		for i := range many {
			many[i] = longterm.Item{ID: fmt.Sprintf("m%d-%d", round, i), Scope: longterm.Scope{Subject: "jo"}}
		}
		write(t, s, at, many...)
	}
	remove(longterm.Deletion{Filter: longterm.Filter{Within: longterm.Scope{Subject: "jo"}}}, 3*longterm.MaxBatch)
}

// clock is one that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

func testExpiry(t *testing.T, open Open) {
	c := &clock{now: At(0)}
	s, at := open(t, Options{Now: c.read, Limits: longterm.Limits{Items: 6}}), Place("c")
	write(t, s, at, longterm.Item{ID: "stays", Text: "anchor", Vector: []float32{1, 0}})
	for i := range 5 {
		write(t, s, at, longterm.Item{ID: fmt.Sprint("goes", i), Text: "anchor", Vector: []float32{1, 0}, Expires: At(10)})
	}
	c.set(At(9))
	if got := query(t, s, at, longterm.Query{}); len(got) != 6 {
		t.Errorf("before: %v", got)
	}
	if n, err := s.Sweep(t.Context(), 100); err != nil || n != 0 {
		t.Errorf("swept too early: %d, %v", n, err)
	}
	c.set(At(10))
	same(t, "query", query(t, s, at, longterm.Query{}), []string{"stays"})
	same(t, "words", search(t, s, at, longterm.Search{Text: "anchor"}), []string{"stays"})
	same(t, "vectors", search(t, s, at, longterm.Search{Vector: []float32{1, 0}}), []string{"stays"})
	if got, err := s.Read(t.Context(), at, []string{"goes1", "stays"}); err != nil || len(got) != 1 {
		t.Errorf("read: %+v, %v", got, err)
	}
	for _, want := range []int{2, 2, 1, 0} {
		if n, err := s.Sweep(t.Context(), 2); err != nil || n != want {
			t.Errorf("swept %d, %v, want %d", n, err, want)
		}
	}
	if st, err := s.Stats(t.Context(), at.Tenant); err != nil || st.Items != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	for i := range 5 { // what has expired makes room
		write(t, s, at, longterm.Item{ID: fmt.Sprint("later", i), Expires: At(20)})
	}
	c.set(At(21))
	write(t, s, at, longterm.Item{ID: "new1"}, longterm.Item{ID: "new2"})
	same(t, "at the end", query(t, s, at, longterm.Query{}), []string{"new2", "new1", "stays"})
}

func testQuota(t *testing.T, open Open) {
	s := open(t, Options{Limits: longterm.Limits{Items: 4, Bytes: 1000}})
	at, next := Place("c"), Place("d")
	write(t, s, at, longterm.Item{ID: "a", Text: strings.Repeat("x", 400)})
	write(t, s, next, longterm.Item{ID: "a", Text: strings.Repeat("x", 400)})
	var quota *longterm.QuotaError
	err := s.Write(t.Context(), at, []longterm.Item{{ID: "b", Text: strings.Repeat("x", 400)}})
	if !errors.As(err, &quota) || quota.What != "bytes" || quota.Tenant != "acme" || quota.Limit != 1000 {
		t.Errorf("%v", err)
	}
	write(t, s, longterm.Place{Tenant: "other", Collection: "c"}, longterm.Item{ID: "b", Text: strings.Repeat("x", 400)})
	write(t, s, at, longterm.Item{ID: "a", Text: strings.Repeat("x", 300)}) // less than before
	write(t, s, at, longterm.Item{ID: "b"}, longterm.Item{ID: "c"})
	if err := s.Write(t.Context(), next, []longterm.Item{{ID: "d"}}); !errors.As(err, &quota) || quota.What != "items" {
		t.Errorf("%v", err)
	}
	if n, err := s.Delete(t.Context(), at, longterm.Deletion{IDs: []string{"b"}}); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	write(t, s, next, longterm.Item{ID: "d"})
}

func testStats(t *testing.T, open Open) {
	s := open(t, Options{})
	items := []longterm.Item{{ID: "a", Text: "four", Tags: []string{"t"}}, {ID: "b", Fields: longterm.Fields{"n": 1}, Vector: []float32{1}}}
	write(t, s, Place("x"), items...)
	write(t, s, Place("b"), items[0])
	write(t, s, longterm.Place{Tenant: "other", Collection: "c"}, items[0])
	got, err := s.Stats(t.Context(), "acme")
	if err != nil || got.Items != 3 || len(got.Collections) != 2 || got.Collections[0].Name != "b" || got.Collections[1].Items != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if s.Features().Readable {
		a, b := items[0].Size(), items[1].Size()
		want := longterm.Stats{Items: 3, Bytes: 2*a + b, Collections: []longterm.CollectionStats{{Name: "b", Items: 1, Bytes: a}, {Name: "x", Items: 2, Bytes: a + b}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if got, err := s.Stats(t.Context(), "none"); err != nil || got.Items != 0 || len(got.Collections) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if f := s.Features(); f.Kind == "" || f.MaxScan < 0 {
		t.Errorf("%+v", f)
	}
}

// odd are texts that may be mistaken for something else.
func odd() []string {
	return []string{
		"'; DROP TABLE longshore_memory; --", `" OR "1"="1`, "100%", "under_score", "%", "_", `back\slash`, "a:b*c", "NEAR(a b)", "x AND y OR NOT z", "col:val",
		"^caret", "(((", `"`, "''", "{1,2}", "$1", "?", "tab\tand\nline", "\u202eright to left", "emoji 🚢", "combining e\u0301", "__proto__", "constructor", "toString", "null", "{}", "[]",
		"&|!<->", ":*", "\x7f", strings.Repeat("long", 10_000),
	}
}

func testOddTexts(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	var items []longterm.Item
	for i, text := range odd() {
		field := text
		if len(field) > longterm.MaxFieldText {
			field = field[:longterm.MaxFieldText]
		}
		items = append(items, longterm.Item{ID: fmt.Sprint("o", i), Text: text, Fields: longterm.Fields{"v": field}, Created: At(100 - i)})
	}
	write(t, s, at, items...)
	got, err := s.Query(t.Context(), at, longterm.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(items, got.Items); diff != "" {
		t.Error(diff)
	}
	for i := range items {
		same(t, items[i].ID, query(t, s, at, longterm.Query{Filter: longterm.Filter{Equal: map[string]any{"v": items[i].Fields["v"]}}}), []string{items[i].ID})
	}
	names := longterm.Fields{}
	for _, name := range []string{"__proto__", "constructor", "$.x", `a"b`, "a'b", "a.b", "a[0]", "%", "_", " ", "ключ"} {
		names[name] = name
	}
	write(t, s, at, longterm.Item{ID: "names", Fields: names, Tags: []string{"%", "a'b", `"`}})
	for name := range names {
		same(t, name, query(t, s, at, longterm.Query{Filter: longterm.Filter{Equal: map[string]any{name: name}}}), []string{"names"})
	}
	same(t, "tag", query(t, s, at, longterm.Query{Filter: longterm.Filter{Tags: []string{"a'b", "%"}}}), []string{"names"})
	same(t, "no tag", query(t, s, at, longterm.Query{Filter: longterm.Filter{Tags: []string{"a%"}}}), []string{})
}

func testHostileSearches(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	write(t, s, at, longterm.Item{ID: "plain", Text: "the plain anchor", Vector: []float32{1}}, longterm.Item{ID: "other", Text: "a crate"})
	for _, text := range odd() {
		if _, err := s.Search(t.Context(), at, longterm.Search{Text: text}); err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
		got := search(t, s, at, longterm.Search{Text: text + " anchor"})
		if len(text) < 100 {
			same(t, text, got, []string{"plain"})
		}
	}
	var many []string
	for i := range 9000 {
		many = append(many, fmt.Sprint("w", i))
	}
	same(t, "many words", search(t, s, at, longterm.Search{Text: strings.Join(many, " ")}), []string{})
	// A word as long as a text may be, and texts of nothing but marks.
	write(t, s, at, longterm.Item{ID: "wide", Text: strings.Repeat("w", longterm.MaxText)}, longterm.Item{ID: "marks", Text: strings.Repeat("\u0301", 1000)})
	if _, err := s.Search(t.Context(), at, longterm.Search{Text: strings.Repeat("w", longterm.MaxText)}); err != nil {
		t.Error(err)
	}
}

func testRefused(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	refused := func(name string, err error, field string) {
		t.Helper()
		var wrong *messages.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v, want an error of %s", name, err, field)
		}
	}
	many := longterm.Fields{}
	for i := range longterm.MaxFields + 1 {
		many[strconv.Itoa(i)] = 1
	}
	large := longterm.Fields{}
	for i := range 5 {
		large[strconv.Itoa(i)] = strings.Repeat("x", longterm.MaxFieldText)
	}
	for field, it := range map[string]longterm.Item{
		"items[0].id":              {ID: ""},
		"items[0].text":            {ID: "a", Text: strings.Repeat("x", 1<<20)},
		"items[0].scope.agent":     {ID: "a", Scope: longterm.Scope{Agent: "a b"}},
		"items[0].scope.subject":   {ID: "a", Scope: longterm.Scope{Subject: "a\x00"}},
		"items[0].source.run":      {ID: "a", Source: longterm.Source{Run: "../x"}},
		"items[0].source.step":     {ID: "a", Source: longterm.Source{Step: -1}},
		"items[0].source.document": {ID: "a", Source: longterm.Source{Document: "a\nb"}},
		"items[0].fields":          {ID: "a", Fields: many},
		"items[0].fields.x":        {ID: "a", Fields: longterm.Fields{"x": []string{"no"}}},
		"items[0].fields.y":        {ID: "a", Fields: longterm.Fields{"y": "\xff"}},
		"items[0].fields.z":        {ID: "a", Fields: longterm.Fields{"z": strings.Repeat("x", longterm.MaxFieldText+1)}},
		"items[0].tags[1]":         {ID: "a", Tags: []string{"ok", ""}},
		"items[0].created":         {ID: "a", Created: time.Date(1066, 1, 1, 0, 0, 0, 0, time.UTC)},
		"items[0].vector":          {ID: "a", Vector: make([]float32, longterm.MaxDimensions+1)},
		"items[0].model":           {ID: "a", Model: strings.Repeat("m", longterm.MaxModel+1)},
	} {
		refused(field, s.Write(t.Context(), at, []longterm.Item{it}), field)
	}
	refused("a NUL", s.Write(t.Context(), at, []longterm.Item{{ID: "a", Text: "a\x00b"}}), "items[0].text")
	refused("no UTF-8", s.Write(t.Context(), at, []longterm.Item{{ID: "a", Text: "a\xffb"}}), "items[0].text")
	refused("large fields", s.Write(t.Context(), at, []longterm.Item{{ID: "a", Fields: large}}), "items[0].fields")
	refused("a vector of nothing", s.Write(t.Context(), at, []longterm.Item{{ID: "a", Vector: []float32{0, 0}}}), "items[0].vector")
	refused("a batch", s.Write(t.Context(), at, make([]longterm.Item, longterm.MaxBatch+1)), "items")
	refused("a tenant", s.Write(t.Context(), longterm.Place{Tenant: "a.b", Collection: "c"}, nil), "tenant")
	refused("a collection", s.Write(t.Context(), longterm.Place{Tenant: "a"}, nil), "collection")
	for field, q := range map[string]longterm.Search{
		"text": {}, "topK": {Text: "x", TopK: longterm.MaxTopK + 1}, "vector": {Vector: []float32{0}}, "tags[0]": {Text: "x", Filter: longterm.Filter{Tags: []string{""}}},
		"equal.x": {Text: "x", Filter: longterm.Filter{Equal: map[string]any{"x": nil}}}, "ranges[0].from": {Text: "x", Filter: longterm.Filter{Ranges: []longterm.Range{{Field: "f"}}}},
		"ranges[0].to": {Text: "x", Filter: longterm.Filter{Ranges: []longterm.Range{{Field: "f", From: 1, To: time.Now()}}}},
	} {
		_, err := s.Search(t.Context(), at, q)
		refused("search", err, field)
	}
	_, err := s.Search(t.Context(), at, longterm.Search{Text: "a\x00"})
	refused("a NUL in a search", err, "text")
	_, err = s.Search(t.Context(), at, longterm.Search{Text: strings.Repeat("x", 1<<20)})
	refused("a search of 1 MiB", err, "text")
	_, err = s.Query(t.Context(), at, longterm.Query{Limit: longterm.MaxBatch + 1})
	refused("limit", err, "limit")
	_, err = s.Read(t.Context(), at, []string{"a", "b c"})
	refused("read", err, "ids[1]")
	_, err = s.Delete(t.Context(), at, longterm.Deletion{})
	refused("delete nothing", err, "filter")
	_, err = s.Delete(t.Context(), longterm.Place{Tenant: "acme"}, longterm.Deletion{IDs: []string{"a"}})
	refused("delete ids everywhere", err, "collection")
	_, err = s.Delete(t.Context(), at, longterm.Deletion{IDs: []string{"a"}, All: true})
	refused("delete ids and all", err, "ids")
	_, err = s.Stats(t.Context(), "")
	refused("stats", err, "tenant")
	same(t, "nothing was written", query(t, s, at, longterm.Query{}), []string{})
}

func testEnded(t *testing.T, open Open) {
	s, at := open(t, Options{}), Place("c")
	write(t, s, at, longterm.Item{ID: "a", Text: "anchor"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, readErr := s.Read(ctx, at, []string{"a"})
	_, queryErr := s.Query(ctx, at, longterm.Query{})
	_, searchErr := s.Search(ctx, at, longterm.Search{Text: "anchor"})
	_, deleteErr := s.Delete(ctx, at, longterm.Deletion{IDs: []string{"a"}})
	_, sweepErr := s.Sweep(ctx, 10)
	for name, err := range map[string]error{
		"write": s.Write(ctx, at, []longterm.Item{{ID: "b"}}), "read": readErr, "query": queryErr, "search": searchErr, "delete": deleteErr, "sweep": sweepErr,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	same(t, "as before", query(t, s, at, longterm.Query{}), []string{"a"})
}

func testConcurrent(t *testing.T, open Open) {
	s := open(t, Options{Limits: longterm.Limits{Items: 200}})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			at := Place(fmt.Sprint("c", w%2))
			for i := range 10 {
				items := []longterm.Item{{ID: fmt.Sprintf("%d-%d", w, i), Text: "an anchor", Vector: []float32{1, 0}}, {ID: fmt.Sprintf("shared-%d", i), Text: "a crate"}}
				if err := s.Write(t.Context(), at, items); err != nil {
					t.Errorf("write: %v", err)
				}
				if _, err := s.Search(t.Context(), at, longterm.Search{Text: "anchor", Vector: []float32{1, 0}}); err != nil {
					t.Errorf("search: %v", err)
				}
				if i%3 == 0 {
					if _, err := s.Delete(t.Context(), at, longterm.Deletion{IDs: []string{fmt.Sprintf("%d-%d", w, i)}}); err != nil {
						t.Errorf("delete: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	stats, err := s.Stats(t.Context(), "acme")
	if err != nil || stats.Items != 8*6+20 {
		t.Errorf("%+v, %v, want %d items", stats, err, 8*6+20)
	}
	var counted int64
	for _, c := range stats.Collections {
		page, err := s.Query(t.Context(), Place(c.Name), longterm.Query{Limit: longterm.MaxBatch})
		if err != nil {
			t.Fatal(err)
		}
		counted += int64(len(page.Items))
	}
	if counted != stats.Items {
		t.Errorf("there are %d items, and %d are counted", counted, stats.Items)
	}
}
