package settings

import "errors"

// Dev is the environment of `longshore dev` and of `longshore run` without NATS_URL.
type Dev struct {
	Models
	Logs
	Hooks
	Git
	Tools
	Policy
	LongTerm
	Serving
	Runs
	Events
	Encryption
	MemoryLimit
	UploadBytes int64 `env:"LONGSHORE_UPLOAD_BYTES" envDefault:"1073741824" help:"bytes of a tenant's uploads that no run refers to yet"`
}

// Dispatcher is the dispatcher of the fleet in one process.
func (s *Dev) Dispatcher() Dispatcher {
	return Dispatcher{
		Serving: s.Serving, MaxInput: s.MaxInput, FileBytes: s.WorkspaceBytes, UploadBytes: s.UploadBytes, Replicas: 1, Events: s.Events, Encryption: s.Encryption, LongTerm: s.LongTerm, Policy: s.Policy,
	}
}

// Worker is the worker of the fleet in one process.
func (s *Dev) Worker() Worker {
	return Worker{
		Models: s.Models, Hooks: s.Hooks, Git: s.Git, Tools: s.Tools, Policy: s.Policy, LongTerm: s.LongTerm, Runs: s.Runs, Events: s.Events, Encryption: s.Encryption, MemoryLimit: s.MemoryLimit,
	}
}

// Check returns an *Error.
func (s *Dev) Check() error {
	return first(errors.Join(
		s.Models.Check(), s.Logs.Check(), s.Hooks.Check(), s.Git.Check(), s.LongTerm.Check(), s.Serving.Check(), s.Runs.Check(), s.MemoryLimit.Check(), checkUploads(s.WorkspaceBytes, s.UploadBytes),
	))
}
