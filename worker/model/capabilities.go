package model

// Capabilities are what a model can do behind its endpoint. An endpoint does not tell, so the operator does; a leaf
// has a guess for those it knows.
type Capabilities struct {
	Tools      bool // native tool calls
	Streaming  bool
	JSONSchema bool // a reply held to a schema
	JSONMode   bool // a reply held to JSON
	Images     bool // as input
	Files      bool // PDF, as input
	Reasoning  bool // thinks aloud, and takes its own reasoning back

	ContextWindow int // tokens of request and reply together; 0: unknown
	MaxOutput     int // tokens of a reply; 0: unknown
}

// Or is what at least one of two models can do. Of sizes it is the larger; one that is unknown has no bound.
func (c Capabilities) Or(d Capabilities) Capabilities {
	size := func(a, b int) int {
		if a == 0 || b == 0 {
			return 0
		}
		return max(a, b)
	}
	return Capabilities{
		Tools: c.Tools || d.Tools, Streaming: c.Streaming || d.Streaming, JSONSchema: c.JSONSchema || d.JSONSchema,
		JSONMode: c.JSONMode || d.JSONMode, Images: c.Images || d.Images, Files: c.Files || d.Files, Reasoning: c.Reasoning || d.Reasoning,
		ContextWindow: size(c.ContextWindow, d.ContextWindow), MaxOutput: size(c.MaxOutput, d.MaxOutput),
	}
}
