package model

// Capabilities are what a model can do. Sizes are in tokens; 0: unknown.
type Capabilities struct {
	Tools, Streaming, JSONSchema, JSONMode, Images, Reasoning bool
	ContextWindow, MaxOutput                                  int
}
