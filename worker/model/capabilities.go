package model

// Capabilities are what a provider's model can do.
type Capabilities struct {
	Tools, Streaming, JSONSchema, JSONMode, Images, Reasoning bool
	ContextWindow, MaxOutput                                  int // tokens; 0: unknown
}
