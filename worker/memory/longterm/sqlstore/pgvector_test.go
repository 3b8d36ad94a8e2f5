//go:build unix

package sqlstore_test

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/longtermtest"
	"github.com/longshore-run/longshore/worker/memory/longterm/sqlstore"
)

// withPgvector returns a way to an empty database of a PostgreSQL that has pgvector: that of the machine, or one that
// LONGSHORE_TEST_PGVECTOR names, whose tables of long-term memory are removed. It is nil without one, which the log says.
func withPgvector(t *testing.T) func(*testing.T) string {
	t.Helper()
	if server := postgrestest.Open(t); server != nil {
		where := server.URL("longshore", server.Database(t))
		if s := open(t, sqlstore.Config{Where: where}); hasPgvector(t, s) {
			return func(t *testing.T) string { t.Helper(); return server.URL("longshore", server.Database(t)) }
		}
	}
	if where := os.Getenv("LONGSHORE_TEST_PGVECTOR"); where != "" {
		return func(t *testing.T) string {
			t.Helper()
			s := open(t, sqlstore.Config{Where: where, Timeout: time.Minute})
			err := s.Exec(t.Context(), "DROP TABLE IF EXISTS longshore_memory, longshore_memory_fields, longshore_memory_tags, longshore_memory_usage, longshore_memory_version")
			if err != nil {
				t.Fatal(err)
			}
			return where
		}
	}
	t.Log("no PostgreSQL with pgvector on the machine, nor in LONGSHORE_TEST_PGVECTOR: it was left out")
	return nil
}

func hasPgvector(t *testing.T, s *sqlstore.Store) bool {
	t.Helper()
	if _, err := s.Stats(t.Context(), "any"); err != nil {
		t.Fatal(err)
	}
	return s.HasPgvector()
}

// All that is promised holds with pgvector too, whether a search compares each vector or uses the index.
func TestPgvectorConformance(t *testing.T) {
	place := withPgvector(t)
	if place == nil {
		return
	}
	for name, exact := range map[string]int{"exact": sqlstore.MaxScan, "index": 0} {
		t.Run(name, func(t *testing.T) {
			longtermtest.Run(t, func(t *testing.T, o longtermtest.Options) longterm.Store {
				t.Helper()
				s := open(t, sqlstore.Config{Where: place(t), Limits: o.Limits, Now: o.Now, Timeout: 30 * time.Second})
				s.SetExact(exact)
				if !hasPgvector(t, s) || !s.Features().VectorIndex || s.Features().MaxScan != 0 {
					t.Fatalf("%+v", s.Features())
				}
				return s
			})
		})
	}
}

// Vectors that were written before the server had pgvector are found with it.
func TestPgvectorFindsOlderVectors(t *testing.T) {
	place := withPgvector(t)
	if place == nil {
		return
	}
	where, at := place(t), longtermtest.Place("c")
	s := open(t, sqlstore.Config{Where: where, Timeout: 30 * time.Second})
	items := make([]longterm.Item, longterm.MaxBatch)
	for i := range items {
		angle := float64(i) / float64(len(items))
		items[i] = longterm.Item{ID: fmt.Sprint("i", i), Vector: []float32{float32(math.Cos(angle)), float32(math.Sin(angle))}}
	}
	if err := s.Write(t.Context(), at, items); err != nil {
		t.Fatal(err)
	}
	if err := s.Exec(t.Context(), "UPDATE longshore_memory SET embedding = NULL"); err != nil {
		t.Fatal(err)
	}
	later := open(t, sqlstore.Config{Where: where, Timeout: 30 * time.Second})
	later.SetExact(0)
	found, err := later.Search(t.Context(), at, longterm.Search{Vector: []float32{1, 0}, TopK: 3})
	if err != nil || len(found.Hits) != 3 || found.Hits[0].ID != "i0" || found.Hits[2].ID != "i2" {
		t.Errorf("%+v, %v", found.Hits, err)
	}
}
