package process

import "context"

// Init does nothing: no programs run here.
func Init() {}

// HideProcess does nothing here.
func HideProcess() error { return nil }

// New returns an [UnavailableError]: programs are confined by Linux only.
func New(context.Context, Config) (*Native, error) {
	return nil, unavailable()
}

// Run returns an [UnavailableError].
func (n *Native) Run(context.Context, Command) (Result, error) { return Result{}, unavailable() }

// Load returns how many programs run, and how many wait for their turn.
func (n *Native) Load() (running, waiting int) { return 0, 0 }

func unavailable() error {
	return &UnavailableError{Missing: always, Reasons: []string{"programs are confined on Linux only"}}
}
