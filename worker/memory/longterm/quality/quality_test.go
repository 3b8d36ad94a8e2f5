package quality_test

import (
	"path/filepath"
	"testing"

	"github.com/longshore-run/longshore/worker/memory/embedding"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/memstore"
	"github.com/longshore-run/longshore/worker/memory/longterm/quality"
	"github.com/longshore-run/longshore/worker/memory/longterm/sqlstore"
)

// The set is what it says it is.
func TestSet(t *testing.T) {
	t.Parallel()
	docs, asked := quality.Documents(), quality.Questions()
	if len(docs) < 100 || len(asked) < 200 {
		t.Errorf("%d documents and %d questions, want 100 and 200 at least", len(docs), len(asked))
	}
	ids, texts, kinds := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, d := range docs {
		if d.Text == "" || ids[d.ID] {
			t.Errorf("document %q has no text or is there twice", d.ID)
		}
		ids[d.ID] = true
	}
	of := map[string]int{}
	for _, q := range asked {
		if !ids[q.Document] || texts[q.Text] {
			t.Errorf("question %q has no document or is there twice", q.Text)
		}
		texts[q.Text] = true
		kinds[q.Kind]++
		of[q.Document]++
	}
	for id := range ids {
		if of[id] == 0 {
			t.Errorf("no question is about %s", id)
		}
	}
	for _, kind := range []string{"words", "paraphrase", "name", "number", "negation"} {
		if kinds[kind] < 10 {
			t.Errorf("%d questions of kind %s", kinds[kind], kind)
		}
	}
}

// Both together find as much as the better of words and vectors, in each store.
func TestHybridIsNotWorse(t *testing.T) {
	t.Parallel()
	file, err := sqlstore.Open(sqlstore.Config{Where: filepath.Join(t.TempDir(), "memory.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	for name, store := range map[string]longterm.Store{"memory": memstore.New(memstore.Config{}), "sqlite": file} {
		report, err := quality.Measure(t.Context(), store, longterm.Place{Tenant: "t", Collection: "c"}, embedding.NewScripted(quality.Texts()...))
		if err != nil {
			t.Fatal(err)
		}
		rate := map[string]float64{}
		for _, r := range report.Results {
			rate[r.Way] = r.All.Rate()
			t.Logf("%s: %s %.3f, %v", name, r.Way, r.All.Rate(), r.Kinds)
		}
		if rate["hybrid"] < max(rate["text"], rate["vector"]) {
			t.Errorf("%s: hybrid %.3f, text %.3f, vector %.3f", name, rate["hybrid"], rate["text"], rate["vector"])
		}
		for way, least := range map[string]float64{"text": 0.69, "vector": 0.74, "hybrid": 0.74} {
			if rate[way] < least {
				t.Errorf("%s: %s finds %.3f, and has found %.2f", name, way, rate[way], least)
			}
		}
	}
}
