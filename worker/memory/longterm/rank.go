package longterm

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The weights of BM25 that are usual: how soon a word that comes again counts less, and how much long texts are held back.
const (
	bm25K = 1.2
	bm25B = 0.75
)

// Scored is an item's id with how well it fits.
type Scored struct {
	ID    string
	Score float64
}

// Depth is how many items of each ranking a search that wants so many fuses.
func Depth(topK int) int { return max(fuseDepth, 2*topK) }

const fuseDepth = 50

// Rank returns the best of the items for a search that has passed its check, by reading all of them: those that pass the filter and
// have not expired. It is the search of stores without an index.
func Rank(items []Item, s *Search, now time.Time) []Hit {
	var fit []Item
	byID := map[string]int{}
	for i := range items {
		if it := &items[i]; !it.Ended(now) && s.Passes(it) {
			byID[it.ID] = len(fit)
			fit = append(fit, *it)
		}
	}
	text, vector := ByWords(fit, s.Text), ByVector(fit, s)
	var hits []Hit
	for _, best := range Best(text, vector, s) {
		hits = append(hits, Hit{fit[byID[best.ID]], best.Score})
	}
	return hits
}

// Best returns the best of a ranking by words and one by vectors, of which a search has one or both.
func Best(text, vector []Scored, s *Search) []Scored {
	best := text
	switch {
	case s.Text == "":
		best = vector
	case len(s.Vector) > 0:
		best = Fuse(text, vector)
	}
	return best[:min(len(best), s.TopK)]
}

// ByWords ranks items by BM25 of the stems of a search's words, the best first, without those that have none of them.
func ByWords(items []Item, text string) []Scored {
	stems := Stems(text)
	var docs []Doc
	for i := range items {
		if d := CountWords(&items[i], stems); d.Counts != nil {
			docs = append(docs, d)
		}
	}
	return BM25(docs, len(items))
}

// Doc is a text as BM25 sees it.
type Doc struct {
	ID     string
	Counts []int // how often each of the words that are looked for is in it
	Long   int   // how many words it has
}

// CountWords counts stems in an item; Counts is nil if it has none of them.
func CountWords(it *Item, stems []string) Doc {
	index := make(map[string]int, len(stems))
	for i, stem := range stems {
		index[stem] = i
	}
	d := Doc{ID: it.ID}
	for _, w := range Words(it.Text) {
		d.Long++
		if at, ok := index[Stem(w)]; ok {
			if d.Counts == nil {
				d.Counts = make([]int, len(stems))
			}
			d.Counts[at]++
		}
	}
	return d
}

// BM25 ranks texts that have some of the words that are looked for, among so many.
func BM25(docs []Doc, among int) []Scored {
	if len(docs) == 0 {
		return nil
	}
	among = max(among, len(docs))
	have, total := make([]int, len(docs[0].Counts)), 0
	for _, d := range docs {
		total += d.Long
		for at, n := range d.Counts {
			if n > 0 {
				have[at]++
			}
		}
	}
	mean := math.Max(1, float64(total)/float64(len(docs)))
	out := make([]Scored, 0, len(docs))
	for _, d := range docs {
		score := 0.0
		for at, n := range d.Counts {
			if n == 0 {
				continue
			}
			rare := math.Log(1 + (float64(among)-float64(have[at])+0.5)/(float64(have[at])+0.5))
			score += rare * float64(n) * (bm25K + 1) / (float64(n) + bm25K*(1-bm25B+bm25B*float64(d.Long)/mean))
		}
		out = append(out, Scored{d.ID, score})
	}
	return Ordered(out)
}

// Stems are those of the words that a search looks for, each once.
func Stems(text string) []string {
	var out []string
	for _, w := range SearchWords(text) {
		if s := Stem(w); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// ByVector ranks items by the cosine of their vector and that of a search, the best first: those of its model and length that point
// its way at all.
func ByVector(items []Item, s *Search) []Scored {
	var out []Scored
	if len(s.Vector) == 0 {
		return nil
	}
	for i := range items {
		it := &items[i]
		if it.Model != s.Model || len(it.Vector) != len(s.Vector) {
			continue
		}
		if c := Cosine(it.Vector, s.Vector); c > 0 {
			out = append(out, Scored{it.ID, c})
		}
	}
	return Ordered(out)
}

// Cosine is that of the angle between two vectors of one length; 0 if either has no direction.
func Cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot += x * y
		aa += x * x
		bb += y * y
	}
	if aa < minNorm || bb < minNorm {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}

// Ordered sorts a ranking, the best first, of one score by id, so that the same search has the same answer.
func Ordered(s []Scored) []Scored {
	slices.SortFunc(s, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return s
}

// rrf is the usual constant of reciprocal rank fusion: how much the first places count more than those after them.
const rrf = 60

// Fuse makes one ranking of two, by reciprocal rank fusion.
func Fuse(text, vector []Scored) []Scored {
	sum := map[string]float64{}
	for _, ranking := range [][]Scored{text, vector} {
		for place, s := range ranking {
			sum[s.ID] += 1 / float64(rrf+place+1)
		}
	}
	out := make([]Scored, 0, len(sum))
	for id, score := range sum {
		out = append(out, Scored{id, score})
	}
	return Ordered(out)
}
