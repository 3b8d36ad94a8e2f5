//go:build unix

package sqlstore_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/longtermtest"
	"github.com/longshore-run/longshore/worker/memory/longterm/sqlstore"
)

// BenchmarkSearch compares as many vectors as a SQLite file may have without an index, of a usual length.
func BenchmarkSearch(b *testing.B) {
	const dimensions = 1536
	s, err := sqlstore.Open(sqlstore.Config{Where: filepath.Join(b.TempDir(), "memory.db"), Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	vector := func() []float32 {
		v := make([]float32, dimensions)
		for i := range v {
			v[i] = float32(rand.NormFloat64())
		}
		return v
	}
	items := make([]longterm.Item, longterm.MaxBatch)
	for n := 0; n < sqlstore.MaxScan; n += len(items) {
		for i := range items {
			items[i] = longterm.Item{ID: fmt.Sprint("i", n+i), Text: fmt.Sprintf("crate %d on pier %d", n+i, i%7), Vector: vector()}
		}
		if err := s.Write(b.Context(), longtermtest.Place("c"), items); err != nil {
			b.Fatal(err)
		}
	}
	for name, q := range map[string]longterm.Search{
		"words": {Text: "crate 777 pier"}, "vector": {Vector: vector()}, "both": {Text: "crate 777 pier", Vector: vector()},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Search(b.Context(), longtermtest.Place("c"), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
