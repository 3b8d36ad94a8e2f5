package sqlstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/messages/database"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

const (
	maxIndexed   = 2000 // dimensions that pgvector's index takes
	maxIndexes   = 8    // lengths of vectors that have an index; those of others are compared one by one
	indexDepth   = 200  // how far pgvector's index looks
	backfillMost = 500  // vectors that are copied at once
)

// pgvector reports whether the server has the extension.
func (st *Store) pgvector() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.pgv
}

// searchesFiltered reports whether an index finds what passes a filter, however little that is.
func (st *Store) searchesFiltered() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.filters
}

// preparePgvector uses the extension if the server has it and the user may, and gives it the vectors that were written without.
func (st *Store) preparePgvector(ctx context.Context) (there, filters bool, err error) {
	err = st.db.Transaction(ctx, st.db.Writes, func(t *database.Tx) error {
		var n int
		if err := t.One(ctx, []any{&n}, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"); err != nil || n == 0 {
			return err
		}
		if _, err := t.Exec(ctx, "SELECT pg_advisory_xact_lock(?)", int64(lockTables)); err != nil {
			return err
		}
		if err := t.One(ctx, []any{&n}, "SELECT count(*) FROM pg_extension WHERE extname = 'vector'"); err != nil {
			return err
		}
		if n == 0 {
			if _, err := t.Exec(ctx, "SAVEPOINT extension"); err != nil {
				return err
			}
			if _, err := t.Exec(ctx, "CREATE EXTENSION vector"); err != nil { // the user may not: it is as if there were none
				_, err := t.Exec(ctx, "ROLLBACK TO SAVEPOINT extension")
				return err
			}
		}
		there = true
		// Since 0.8 an index continues its search until enough passes the filter.
		if err := t.One(ctx, []any{&filters}, "SELECT string_to_array(extversion, '.')::int[] >= '{0,8}' FROM pg_extension WHERE extname = 'vector'"); err != nil {
			return err
		}
		_, err := t.Exec(ctx, "ALTER TABLE longshore_memory ADD COLUMN IF NOT EXISTS embedding vector")
		return err
	})
	for more := there; more && err == nil; {
		more, err = st.backfill(ctx)
	}
	return there && err == nil, filters, err
}

// backfill copies some vectors that were written without pgvector, and reports whether there may be more.
func (st *Store) backfill(ctx context.Context) (more bool, err error) {
	err = st.db.Transaction(ctx, st.db.Writes, func(t *database.Tx) error {
		vectors := map[int64]any{}
		err := t.Each(ctx, func(scan func(...any) error) error {
			var key int64
			var packed []byte
			err := scan(&key, &packed)
			vectors[key] = literal(unpack(packed))
			return err
		}, "SELECT key, vector FROM longshore_memory WHERE embedding IS NULL AND dims > 0 LIMIT ? FOR UPDATE", backfillMost)
		if err != nil {
			return err
		}
		more = len(vectors) == backfillMost
		for key, vector := range vectors {
			if _, err := t.Exec(ctx, "UPDATE longshore_memory SET embedding = ?::vector WHERE key = ?", vector, key); err != nil {
				return err
			}
		}
		return nil
	})
	return more, err
}

// literal is a vector as pgvector reads it; nil for none.
func literal(vector []float32) any {
	if len(vector) == 0 {
		return nil
	}
	b := []byte{'['}
	for i, x := range vector {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return string(append(b, ']'))
}

// nearest ranks by the vector of a search, in the server: exactly for few items, which is also right for a narrow filter, and else by the
// index, if there is one for vectors of this length.
func (t *tx) nearest(ctx context.Context, w *where, s *longterm.Search, exact bool) (found []longterm.Scored, err error) {
	distance := fmt.Sprintf("(m.embedding::vector(%d) <=> ?::vector(%[1]d))", len(s.Vector))
	order := distance
	if exact || !t.st.searchesFiltered() {
		order += " + 0" // no index is in this order
	} else {
		for _, setting := range []string{"hnsw.ef_search = " + strconv.Itoa(indexDepth), "hnsw.iterative_scan = strict_order"} {
			if _, err := t.Exec(ctx, "SET LOCAL "+setting); err != nil {
				return nil, err
			}
		}
	}
	vector := literal(s.Vector)
	args := append([]any{vector}, w.args...)
	err = t.Each(ctx, func(scan func(...any) error) error {
		var hit longterm.Scored
		if err := scan(&hit.ID, &hit.Score); err != nil {
			return err
		}
		if hit.Score > 0 {
			found = append(found, hit)
		}
		return nil
	}, "SELECT m.id, 1 - "+distance+" FROM longshore_memory m"+w.String()+" ORDER BY "+order+" LIMIT ?", append(args, vector, longterm.Depth(s.TopK))...)
	return longterm.Ordered(found), err
}

// index makes an index for vectors of the lengths of items that have been written, unless there are too many lengths.
func (st *Store) index(ctx context.Context, items []longterm.Item) error {
	if !st.pgvector() {
		return nil
	}
	for i := range items {
		n := len(items[i].Vector)
		if n == 0 || n > maxIndexed || !st.needsIndex(n) {
			continue
		}
		name := "longshore_memory_vectors_" + strconv.Itoa(n)
		err := st.db.Transaction(ctx, st.db.Writes, func(t *database.Tx) error {
			var indexes int
			if err := t.One(ctx, []any{&indexes}, "SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND starts_with(indexname, 'longshore_memory_vectors_') AND indexname <> ?", name); err != nil || indexes >= maxIndexes {
				return err
			}
			_, err := t.Exec(ctx, strings.NewReplacer("{name}", name, "{n}", strconv.Itoa(n)).Replace(
				"CREATE INDEX IF NOT EXISTS {name} ON longshore_memory USING hnsw ((embedding::vector({n})) vector_cosine_ops) WHERE dims = {n}"))
			return err
		})
		if err != nil {
			return fmt.Errorf("make an index for vectors: %w", err)
		}
		st.mu.Lock()
		st.indexed[n] = true
		st.mu.Unlock()
	}
	return nil
}

func (st *Store) needsIndex(n int) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return !st.indexed[n]
}
