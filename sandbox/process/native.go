package process

// Native runs programs on this machine, at most [Config.Parallel] at once; further ones wait for their turn. Safe for
// concurrent use.
type Native struct {
	cfg    Config
	layers Layers
	turns  chan struct{} // holds one element for each program that runs
}

var _ Runner = (*Native)(nil)

// Layers returns what the self-test proved.
func (n *Native) Layers() Layers { return n.layers }
