//go:build amd64 || arm64

package process

import "context"

// NewWith is New with the place of longshore-sandbox, and the sum that it must have.
func NewWith(ctx context.Context, cfg Config, path, sum string) (*Native, error) {
	return newNative(ctx, cfg, path, sum)
}

// Knows makes the runner ask no more of Landlock than a version has.
func (n *Native) Knows(abi int) { n.abi = abi }
