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
	AckWait      time.Duration `env:"LONGSHORE_ACK_WAIT"      envDefault:"30s" help:"how long a silent worker keeps a task"`
	Slots        int           `env:"LONGSHORE_SLOTS"         envDefault:"64"  help:"runs worked at once"`
	DrainTimeout time.Duration `env:"LONGSHORE_DRAIN_TIMEOUT" envDefault:"30s" help:"how long a stopping worker waits for steps to end"`
	MaxAttempts  int           `env:"LONGSHORE_MAX_ATTEMPTS"  envDefault:"5"   help:"claims without progress before a task is dead"`
	ModelTimeout time.Duration `env:"LONGSHORE_MODEL_TIMEOUT" envDefault:"60s" help:"how long a model may be silent"`
	ToolTimeout  time.Duration `env:"LONGSHORE_TOOL_TIMEOUT"  envDefault:"30s" help:"how long a tool call may take, for tools without their own timeout"`
	BlobBytes    int           `env:"LONGSHORE_BLOB_BYTES"    envDefault:"65536" help:"size in bytes above which an entry of a run's log is stored as a blob: 4096 to 524288"`
	MaxInput     int           `env:"LONGSHORE_MAX_INPUT"     envDefault:"1048576" help:"maximum bytes of a task's input: 1 to 1048576"`
	MemoryTTL    time.Duration `env:"LONGSHORE_MEMORY_TTL"    envDefault:"24h" help:"how long short-term memory is kept"`
	Retention    time.Duration `env:"LONGSHORE_RETENTION"     envDefault:"168h" help:"how long a run's log is kept after its end"`
	LiteTimeout  time.Duration `env:"LONGSHORE_LITE_TIMEOUT"  envDefault:"120s" help:"how long /run-lite waits for its run before it cancels it"`
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
	return Worker{
		Models: s.Models, Slots: s.Slots, DrainTimeout: s.DrainTimeout, MaxAttempts: s.MaxAttempts, ModelTimeout: s.ModelTimeout, MemoryTTL: s.MemoryTTL,
		ToolTimeout: s.ToolTimeout, BlobBytes: s.BlobBytes, MaxInput: s.MaxInput, Hooks: s.Hooks, Tools: s.Tools, Policy: s.Policy,
	}
}

// Check returns an *Error.
func (s *Dev) Check() error {
	if err := errors.Join(s.Models.Check(), s.Logs.Check(), s.Hooks.Check(), s.Webhooks.Check(), s.Access.Check(), s.Traces.Check(), s.RunIndex.Check()); err != nil {
		return first(err)
	}
	w := s.Worker()
	if err := w.checkLimits(); err != nil {
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
