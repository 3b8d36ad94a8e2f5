package model

// Capabilities are what a model can do behind its endpoint. An endpoint does not tell, so the operator does; a leaf
// has a guess for those it knows.
type Capabilities struct {
	Tools      bool // native tool calls
	Streaming  bool
	JSONSchema bool // a reply held to a schema
	JSONMode   bool // a reply held to JSON
	Images     bool // as input
	Reasoning  bool // thinks aloud, and takes its own reasoning back

	ContextWindow int // tokens of request and reply together; 0: unknown
	MaxOutput     int // tokens of a reply; 0: unknown
}
