package longterm

import (
	"cmp"
	"math"
	"slices"
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

// Best returns the best of a ranking by words and one by vectors, of which a search has one or both.
func Best(text, vector []Scored, s *Search) []Scored {
	best := text
	switch {
	case s.Text == "":
		best = vector
	case len(s.Vector) > 0:
		depth := Depth(s.TopK)
		best = Fuse(text[:min(len(text), depth)], vector[:min(len(vector), depth)])
	}
	return best[:min(len(best), s.TopK)]
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

// BM25 ranks texts that have some of the words that are looked for, among so many. A score is a part of what a text could have at most that
// has all of them, so that it says how well the words fit, and not only which text fits best.
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
	rare, most := make([]float64, len(have)), 0.0
	for at, n := range have {
		rare[at] = math.Log(1 + (float64(among)-float64(n)+0.5)/(float64(n)+0.5))
		most += rare[at] * (bm25K + 1)
	}
	out := make([]Scored, 0, len(docs))
	for _, d := range docs {
		score := 0.0
		for at, n := range d.Counts {
			if n == 0 {
				continue
			}
			score += rare[at] * float64(n) * (bm25K + 1) / (float64(n) + bm25K*(1-bm25B+bm25B*float64(d.Long)/mean))
		}
		out = append(out, Scored{d.ID, score / most})
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

// The weights of a fused ranking. Of the ways that were measured on the questions of package quality, this sum alone found as much as the
// better of the two rankings, with any vectorWeight from 1.5 to 3: reciprocal ranks let a document with one common word of a
// question push out the one that means it.
const (
	vectorWeight = 2
	leastVector  = 0.05 // of the last in the ranking, the first has 1
)

// Fuse makes one ranking of two: the sum of how well the words fit, and of how close a vector is among those of its ranking.
func Fuse(text, vector []Scored) []Scored {
	sum := map[string]float64{}
	for _, s := range text {
		sum[s.ID] += s.Score
	}
	for _, s := range vector {
		near := 1.0
		if high, low := vector[0].Score, vector[len(vector)-1].Score; high > low {
			near = leastVector + (1-leastVector)*(s.Score-low)/(high-low)
		}
		sum[s.ID] += vectorWeight * near
	}
	out := make([]Scored, 0, len(sum))
	for id, score := range sum {
		out = append(out, Scored{id, score})
	}
	return Ordered(out)
}
