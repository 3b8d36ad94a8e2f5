package longterm

import (
	"context"
	"slices"
	"sync"
)

// Embeddings is what it took to give texts vectors.
type Embeddings struct {
	Model  string // that made the newest of them
	Calls  int    // that were answered
	Tokens int64  // of the texts
}

// Meter counts the embeddings of the calls that have it in their context. The zero value is ready. Safe for concurrent use.
type Meter struct {
	mu    sync.Mutex
	count Embeddings
}

type meterKey struct{}

// Metered returns a context in which m counts embeddings, besides the meters that ctx has.
func (m *Meter) Metered(ctx context.Context) context.Context {
	return context.WithValue(ctx, meterKey{}, append(metersOf(ctx), m))
}

func metersOf(ctx context.Context) []*Meter {
	all, _ := ctx.Value(meterKey{}).([]*Meter)
	return slices.Clip(all)
}

// Count adds embeddings to the meters of a context. An Embedder calls it for each call that its provider may bill.
func Count(ctx context.Context, e Embeddings) {
	for _, m := range metersOf(ctx) {
		m.mu.Lock()
		m.count = Embeddings{e.Model, m.count.Calls + e.Calls, m.count.Tokens + e.Tokens}
		m.mu.Unlock()
	}
}

// Total returns what was counted so far.
func (m *Meter) Total() Embeddings {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// Of returns an embedder whose embeddings m counts too.
func (m *Meter) Of(by Embedder) Embedder { return &meteredEmbedder{by, m} }

type meteredEmbedder struct {
	Embedder

	meter *Meter
}

// Embed implements Embedder.
func (e *meteredEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return e.Embedder.Embed(e.meter.Metered(ctx), texts)
}
