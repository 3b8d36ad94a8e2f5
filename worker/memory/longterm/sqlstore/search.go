package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"github.com/longshore-run/longshore/messages/database"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// candidates is how many items an index of words finds: of more, those that it ranks best.
const candidates = 1000

// Search implements longterm.Reader.
func (st *Store) Search(ctx context.Context, at longterm.Place, s longterm.Search) (found longterm.Found, err error) {
	s, err = s.Check(at)
	if err != nil {
		return found, err
	}
	ctx, end, err := st.begin(ctx)
	if err != nil {
		return found, err
	}
	err = st.db.Read(ctx, func(ctx context.Context, dt *database.Tx) error {
		found, err = (&tx{dt, st}).search(ctx, at, &s)
		return err
	})
	return found, end(err)
}

func (t *tx) search(ctx context.Context, at longterm.Place, s *longterm.Search) (found longterm.Found, err error) {
	text, err := t.byWords(ctx, at, s)
	if err != nil {
		return found, err
	}
	vector, err := t.byVector(ctx, at, s)
	if tooMany, ok := errors.AsType[*longterm.TooManyError](err); ok && s.Text != "" {
		found.Degraded, err = "vectors were left out: "+tooMany.Error(), nil
	}
	if err != nil {
		return found, err
	}
	best := longterm.Best(text, vector, s)
	ids := make([]string, len(best))
	for i, b := range best {
		ids[i] = b.ID
	}
	items, err := t.read(ctx, at, ids)
	if err != nil {
		return found, err
	}
	for i, it := range items { // what is read in one transaction is all there
		found.Hits = append(found.Hits, longterm.Hit{Item: it, Score: best[i].Score})
	}
	return found, nil
}

// byWords ranks by the words of a search.
func (t *tx) byWords(ctx context.Context, at longterm.Place, s *longterm.Search) ([]longterm.Scored, error) {
	stems := longterm.Stems(s.Text)
	if len(stems) == 0 {
		return nil, nil
	}
	var among int
	err := t.One(ctx, []any{&among}, "SELECT COALESCE(SUM(items), 0) FROM longshore_memory_usage WHERE tenant = ? AND collection = ?", at.Tenant, at.Collection)
	if err != nil {
		return nil, err
	}
	w := in(at, &s.Filter).alive(t.st.cfg.Now())
	var docs []longterm.Doc
	if t.Kind() == database.Postgres {
		docs, err = t.lexemes(ctx, w, s.Text, stems)
	} else {
		docs, err = t.fts(ctx, at, w, stems)
	}
	return longterm.BM25(docs, among), err
}

// byVector ranks by the vector of a search.
func (t *tx) byVector(ctx context.Context, at longterm.Place, s *longterm.Search) ([]longterm.Scored, error) {
	if len(s.Vector) == 0 {
		return nil, nil
	}
	w := in(at, &s.Filter).alive(t.st.cfg.Now())
	w.add("m.model = ?", s.Model)
	w.add("m.dims = " + strconv.Itoa(len(s.Vector))) // not a parameter: a partial index has it
	var n int
	if err := t.One(ctx, []any{&n}, "SELECT count(*) FROM (SELECT 1 FROM longshore_memory m"+w.String()+" LIMIT ?) AS fit", append(w.args, t.st.exact+1)...); err != nil {
		return nil, err
	}
	if t.st.pgvector() {
		return t.nearest(ctx, w, s, n <= t.st.exact)
	}
	if n > t.st.exact {
		return nil, &longterm.TooManyError{Max: t.st.exact}
	}
	var items []longterm.Scored
	err := t.Each(ctx, func(scan func(...any) error) error {
		var id string
		var packed sql.RawBytes // not copied
		if err := scan(&id, &packed); err != nil {
			return err
		}
		if c := cosine(packed, s.Vector); c > 0 {
			items = append(items, longterm.Scored{ID: id, Score: c})
		}
		return nil
	}, "SELECT m.id, m.vector FROM longshore_memory m"+w.String(), w.args...)
	items = longterm.Ordered(items)
	return items[:min(len(items), longterm.Depth(s.TopK))], err
}
