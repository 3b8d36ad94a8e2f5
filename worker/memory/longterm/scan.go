package longterm

import "context"

// Ranker ranks items that are read one after another. It keeps what ranks them and not their texts.
type Ranker struct {
	search *Search
	stems  []string
	docs   []Doc
	vector []Scored
	n      int
}

// NewRanker returns a Ranker for a search that has passed its check.
func NewRanker(s *Search) *Ranker { return &Ranker{search: s, stems: Stems(s.Text)} }

// Add adds an item, which has passed the filter.
func (r *Ranker) Add(it *Item) {
	r.n++
	if len(r.stems) > 0 {
		if d := CountWords(it, r.stems); d.Counts != nil {
			r.docs = append(r.docs, d)
		}
	}
	if v := r.search.Vector; len(v) > 0 && it.Model == r.search.Model && len(it.Vector) == len(v) {
		if c := Cosine(it.Vector, v); c > 0 {
			r.vector = append(r.vector, Scored{it.ID, c})
		}
	}
}

// Best returns the best of the items.
func (r *Ranker) Best() []Scored { return Best(BM25(r.docs, r.n), Ordered(r.vector), r.search) }

// ScanAll is the search of stores without an index, by Query and Read: it reads what passes the filter, and returns a *TooManyError if that
// is more than so many items.
func ScanAll(ctx context.Context, s Reader, at Place, q *Search, most int) (found Found, err error) {
	ranker := NewRanker(q)
	page := Query{Filter: q.Filter, Limit: MaxBatch}
	for {
		p, err := s.Query(ctx, at, page)
		if err != nil {
			return found, err
		}
		if ranker.n+len(p.Items) > most {
			return found, &TooManyError{Max: most}
		}
		for i := range p.Items {
			ranker.Add(&p.Items[i])
		}
		if page.Cursor = p.Next; page.Cursor == "" {
			break
		}
	}
	best := ranker.Best()
	score := make(map[string]float64, len(best))
	ids := make([]string, len(best))
	for i, b := range best {
		ids[i], score[b.ID] = b.ID, b.Score
	}
	items, err := s.Read(ctx, at, ids)
	for i := range items { // one that was deleted meanwhile is left out
		found.Hits = append(found.Hits, Hit{items[i], score[items[i].ID]})
	}
	return found, err
}
