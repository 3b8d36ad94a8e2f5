//go:build amd64 || arm64

package process

// Became lets a benchmark start another executable as the child.
func (n *Native) Became(path string) { n.self = path }

// Knows makes the runner ask no more of Landlock than a version has.
func (n *Native) Knows(abi int) { n.abi = abi }
