package longterm

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Embedder turns texts into vectors that are close where the texts mean the same. Safe for concurrent use. Package embedding has some.
type Embedder interface {
	// Embed returns a vector for each text, in their order.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Dimensions is the length of the vectors; 0 while that is not known.
	Dimensions() int
	// Model names what makes the vectors: those of two models are not compared.
	Model() string
}

// Embedded returns a store that gives texts a vector: each item that is written with a text and without one, and each search for a text alone.
// When the embedder fails a write fails as a whole, and may be made again; a search waits for it for 10 s at most, finds by words alone and says
// so in Degraded.
func Embedded(s Store, by Embedder) Store { return &embedded{s, by} }

type embedded struct {
	Store

	by Embedder
}

// Write implements Writer.
func (e *embedded) Write(ctx context.Context, at Place, items []Item) error {
	kept := make([]Item, len(items))
	copy(kept, items)
	var texts []string
	var which []int
	for i := range kept {
		if kept[i].Text != "" && len(kept[i].Vector) == 0 && len(kept[i].Sealed) == 0 {
			texts = append(texts, kept[i].Text)
			which = append(which, i)
		}
	}
	if len(texts) > 0 { // what is refused is not sent to the provider
		if err := at.Check(); err != nil {
			return err
		}
		if _, err := CheckItems(items, time.Time{}); err != nil {
			return err
		}
		vectors, err := e.by.Embed(ctx, texts)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%w: embed %d texts: %w", ErrUnavailable, len(texts), err)
		}
		if len(vectors) != len(texts) {
			return fmt.Errorf("%w: embed %d texts: %d vectors came", ErrUnavailable, len(texts), len(vectors))
		}
		for i, at := range which {
			kept[at].Vector, kept[at].Model = vectors[i], e.by.Model()
		}
	}
	return e.Store.Write(ctx, at, kept)
}

// Search implements Reader.
func (e *embedded) Search(ctx context.Context, at Place, s Search) (Found, error) {
	if s.Text == "" || len(s.Vector) > 0 {
		return e.Store.Search(ctx, at, s)
	}
	if _, err := s.Check(at); err != nil {
		return Found{}, err
	}
	left := ""
	soon, cancel := context.WithTimeoutCause(ctx, embedSoon, errSlow)
	defer cancel()
	switch vectors, err := e.by.Embed(soon, []string{s.Text}); {
	case ctx.Err() != nil:
		return Found{}, context.Cause(ctx)
	case err != nil:
		left = "only words were looked for: " + err.Error()
	case len(vectors) != 1:
		left = "only words were looked for: the embedder returned no vector"
	default:
		s.Vector, s.Model = vectors[0], e.by.Model()
	}
	found, err := e.Store.Search(ctx, at, s)
	if left != "" {
		found.Degraded = strict.Clip(left, maxDegraded)
	}
	return found, err
}

// embedSoon is how long a search waits for its vector: less than a call of a tool has, so that there is time to find by words.
const embedSoon = 10 * time.Second

var errSlow = fmt.Errorf("no vector came within %v", embedSoon)

// maxDegraded bounds what a search says of a failure, in bytes.
const maxDegraded = 512
