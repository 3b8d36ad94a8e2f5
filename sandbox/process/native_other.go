//go:build !linux || !(amd64 || arm64)

package process

import "context"

// Init does nothing: no programs run here.
func Init() {}

// HideProcess does nothing here.
func HideProcess() error { return nil }

// Native runs programs on Linux only.
type Native struct{}

var _ Runner = (*Native)(nil)

// New returns an [UnavailableError].
func New(context.Context, Config) (*Native, error) { return nil, unavailable() }

// Run returns an [UnavailableError].
func (*Native) Run(context.Context, Command) (Result, error) { return Result{}, unavailable() }

// Layers returns none.
func (*Native) Layers() Layers { return 0 }

// StartedBy returns nothing.
func (*Native) StartedBy() string { return "" }

// Load returns zeros.
func (*Native) Load() (running, waiting int) { return 0, 0 }

func unavailable() error {
	return &UnavailableError{Missing: always, Reasons: []string{"programs are confined on Linux only, on amd64 and arm64"}}
}
