package settings

import (
	"errors"
	"time"
)

// Dev is the environment of `longshore dev` and of `longshore run` without NATS_URL.
type Dev struct {
	Models
	Logs
	Hooks
	Tools
	Policy
	Webhooks
	Access
	Traces
	RunIndex
	AckWait time.Duration `env:"LONGSHORE_ACK_WAIT"      envDefault:"30s" help:"how long a silent worker keeps a task"`
	Runs
	Retention   time.Duration `env:"LONGSHORE_RETENTION"     envDefault:"168h" help:"how long a run's log is kept after its end"`
	LiteTimeout time.Duration `env:"LONGSHORE_LITE_TIMEOUT"  envDefault:"120s" help:"how long /run-lite waits for its run before it cancels it"`
}

// Dispatcher is the dispatcher of the fleet in one process.
func (s *Dev) Dispatcher() Dispatcher {
	return Dispatcher{
		AckWait: s.AckWait, Retention: s.Retention, LiteTimeout: s.LiteTimeout, MaxInput: s.MaxInput, Replicas: 1,
		Webhooks: s.Webhooks, Access: s.Access, Traces: s.Traces, RunIndex: s.RunIndex,
	}
}

// Worker is the worker of the fleet in one process.
func (s *Dev) Worker() Worker {
	return Worker{Models: s.Models, Hooks: s.Hooks, Tools: s.Tools, Policy: s.Policy, Runs: s.Runs}
}

// Check returns an *Error.
func (s *Dev) Check() error {
	if err := errors.Join(s.Models.Check(), s.Logs.Check(), s.Hooks.Check(), s.Webhooks.Check(), s.Access.Check(), s.Traces.Check(), s.RunIndex.Check()); err != nil {
		return first(err)
	}
	if err := s.Runs.Check(); err != nil {
		return err
	}
	if s.Retention <= 0 {
		return Errorf("LONGSHORE_RETENTION: must be above 0")
	}
	if s.LiteTimeout <= 0 {
		return Errorf("LONGSHORE_LITE_TIMEOUT: must be above 0")
	}
	return checkAckWait(s.AckWait)
}
