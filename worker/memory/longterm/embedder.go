package longterm

import "context"

// Embedder turns texts into vectors that are close where the texts mean the same. Safe for concurrent use. Package embedding has some.
type Embedder interface {
	// Embed returns a vector for each text, in their order.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Dimensions is the length of the vectors.
	Dimensions() int
	// Model names what makes the vectors: those of two models are not compared.
	Model() string
}
