package embedding

import (
	"context"
	_ "embed"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/worker/memory/longterm"
)

//go:embed thesaurus.txt
var thesaurus string

// The weights of what makes a vector: the stem of a word, what it means by the thesaurus, and the letters that it is made of, which
// bring words close that differ in their ending or in a slip of the pen.
const (
	stemWeight    = 1.0
	meaningWeight = 0.8
	gramWeight    = 0.25
	gram          = 4 // letters

	scriptedDimensions = 512
)

// Scripted makes vectors of words by rules: their stems, a small English thesaurus, and pieces of words, hashed into a fixed number of
// dimensions. The same text has the same vector on every machine. It is for tests and for trying things without a provider: it
// brings close what shares words and synonyms, and knows nothing of grammar.
type Scripted struct {
	meanings map[string][]int // of a stem
	rare     map[string]float64
	usual    float64 // of stems that are in no text of the corpus
}

var _ longterm.Embedder = (*Scripted)(nil)

// NewScripted returns an embedder that counts words the more the fewer texts of the corpus have them; without one all words count the same. Two
// embedders are of one Model only if they have the same corpus: keep it as it is for as long as the vectors are kept.
func NewScripted(corpus ...string) *Scripted {
	s := &Scripted{meanings: map[string][]int{}, rare: map[string]float64{}, usual: 1}
	n := 0
	for line := range strings.Lines(thesaurus) {
		for word := range strings.FieldsSeq(line) {
			stem := longterm.Stem(word)
			s.meanings[stem] = append(s.meanings[stem], n)
		}
		n++
	}
	if len(corpus) == 0 {
		return s
	}
	have := map[string]int{}
	for _, text := range corpus {
		seen := map[string]bool{}
		for _, w := range longterm.Words(text) {
			if stem := longterm.Stem(w); !seen[stem] {
				seen[stem] = true
				have[stem]++
			}
		}
	}
	rare := func(n int) float64 { return math.Log(1 + float64(len(corpus))/float64(1+n)) }
	for stem, n := range have {
		s.rare[stem] = rare(n)
	}
	s.usual = rare(0)
	return s
}

// Model implements longterm.Embedder.
func (*Scripted) Model() string { return "scripted" }

// Dimensions implements longterm.Embedder.
func (*Scripted) Dimensions() int { return scriptedDimensions }

// Embed implements longterm.Embedder.
func (s *Scripted) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out[i] = s.vector(text)
	}
	return out, nil
}

func (s *Scripted) vector(text string) []float32 {
	sum := map[string]float64{}
	for _, w := range longterm.SearchWords(strings.ToValidUTF8(text, " ")) {
		stem := longterm.Stem(w)
		rare, ok := s.rare[stem]
		if !ok {
			rare = s.usual
		}
		sum["s"+stem] += stemWeight * rare
		for _, m := range s.meanings[stem] {
			sum[fmt.Sprint("m", m)] += meaningWeight * rare
		}
		letters := []rune("^" + stem + "$")
		for i := 0; i+gram <= len(letters); i++ {
			sum["g"+string(letters[i:i+gram])] += gramWeight * rare
		}
	}
	if len(sum) == 0 {
		sum["nothing"] = 1 // a vector has a direction
	}
	wide := make([]float64, scriptedDimensions)
	for _, feature := range slices.Sorted(maps.Keys(sum)) { // in one order: a sum of floats depends on it
		weight, h := sum[feature], fnv.New64a()
		_, _ = h.Write([]byte(feature))
		n := h.Sum64()
		if n>>63 == 1 {
			weight = -weight
		}
		wide[n%scriptedDimensions] += weight
	}
	var length float64
	for _, x := range wide {
		length += x * x
	}
	vector := make([]float32, scriptedDimensions)
	if length = math.Sqrt(length); length == 0 {
		vector[0] = 1
		return vector
	}
	for i, x := range wide {
		vector[i] = float32(x / length)
	}
	return vector
}
