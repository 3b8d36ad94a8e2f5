// Package quality measures how well long-term memory finds what is asked for: on documents of an invented shipping company and
// questions about them, each of which one document answers. [Measure] stores the documents and asks the questions by words, by vector
// and by both.
package quality

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/worker/memory/longterm"
)

//go:embed documents.txt
var documents string

//go:embed questions.txt
var questions string

// Top is how many hits count: the document is among them or it was not found.
const Top = 5

// Document is one that is searched.
type Document struct{ ID, Text string }

// Question is one that a document answers.
type Question struct {
	Document string
	Kind     string // what is hard about it: words, paraphrase, name, number or negation
	Text     string
}

// Documents are those of the set.
func Documents() []Document {
	var out []Document
	for line := range strings.Lines(documents) {
		id, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		out = append(out, Document{id, text})
	}
	return out
}

// Texts are those of the documents.
func Texts() []string {
	var out []string
	for _, d := range Documents() {
		out = append(out, d.Text)
	}
	return out
}

// Questions are those of the set.
func Questions() []Question {
	var out []Question
	for line := range strings.Lines(questions) {
		if parts := strings.Split(strings.TrimSpace(line), "\t"); len(parts) == 3 {
			out = append(out, Question{parts[0], parts[1], parts[2]})
		}
	}
	return out
}

// Recall is how often the document was among the first Top hits.
type Recall struct {
	Found int `json:"found"`
	Asked int `json:"asked"`
}

// Rate is from 0 to 1.
func (r Recall) Rate() float64 { return float64(r.Found) / float64(max(r.Asked, 1)) }

// Result is the recall of one way to search, of all questions and of each kind of them.
type Result struct {
	Way   string            `json:"way"` // text, vector or hybrid
	All   Recall            `json:"all"`
	Kinds map[string]Recall `json:"kinds"`
}

// Report is what was measured.
type Report struct {
	Documents int      `json:"documents"`
	Questions int      `json:"questions"`
	Model     string   `json:"model"` // of the vectors
	Results   []Result `json:"results"`
}

// Measure writes the documents to an empty place of a store, and asks the questions in three ways. The store gives no vectors of its own.
func Measure(ctx context.Context, s longterm.Store, at longterm.Place, by longterm.Embedder) (Report, error) {
	docs, asked := Documents(), Questions()
	report := Report{Documents: len(docs), Questions: len(asked), Model: by.Model()}
	texts := make([]string, 0, len(docs)+len(asked))
	for _, d := range docs {
		texts = append(texts, d.Text)
	}
	for _, q := range asked {
		texts = append(texts, q.Text)
	}
	vectors, err := by.Embed(ctx, texts)
	if err != nil {
		return report, fmt.Errorf("embed the documents and questions: %w", err)
	}
	if len(vectors) != len(texts) {
		return report, errors.New("embed the documents and questions: not each has a vector")
	}
	items := make([]longterm.Item, len(docs))
	for i, d := range docs {
		items[i] = longterm.Item{ID: d.ID, Text: d.Text, Vector: vectors[i], Model: by.Model()}
	}
	if err := s.Write(ctx, at, items); err != nil {
		return report, fmt.Errorf("write the documents: %w", err)
	}
	for _, way := range []string{"text", "vector", "hybrid"} {
		r := Result{Way: way, Kinds: map[string]Recall{}}
		for i, q := range asked {
			search := longterm.Search{TopK: Top}
			if way != "vector" {
				search.Text = q.Text
			}
			if way != "text" {
				search.Vector, search.Model = vectors[len(docs)+i], by.Model()
			}
			found, err := s.Search(ctx, at, search)
			if err != nil {
				return report, fmt.Errorf("search for %q: %w", q.Text, err)
			}
			hit := slices.ContainsFunc(found.Hits, func(h longterm.Hit) bool { return h.ID == q.Document })
			kind := r.Kinds[q.Kind]
			r.All.Asked++
			kind.Asked++
			if hit {
				r.All.Found++
				kind.Found++
			}
			r.Kinds[q.Kind] = kind
		}
		report.Results = append(report.Results, r)
	}
	return report, nil
}
