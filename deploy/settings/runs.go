package settings

import (
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
)

// Runs is how a worker works runs: how many at once, and what bounds each.
type Runs struct {
	Slots        int           `env:"LONGSHORE_SLOTS"         envDefault:"64"  help:"runs worked at once"`
	DrainTimeout time.Duration `env:"LONGSHORE_DRAIN_TIMEOUT" envDefault:"30s" help:"how long a stopping worker waits for steps to end"`
	MaxAttempts  int           `env:"LONGSHORE_MAX_ATTEMPTS"  envDefault:"5"   help:"claims without progress before a task is dead"`
	ModelTimeout time.Duration `env:"LONGSHORE_MODEL_TIMEOUT" envDefault:"60s" help:"how long a model may be silent"`
	ToolTimeout  time.Duration `env:"LONGSHORE_TOOL_TIMEOUT"  envDefault:"30s" help:"how long a tool call may take, for tools without their own timeout"`
	BlobBytes    int           `env:"LONGSHORE_BLOB_BYTES"    envDefault:"65536" help:"size in bytes above which an entry of a run's log is stored as a blob: 4096 to 524288"`
	MaxInput     int           `env:"LONGSHORE_MAX_INPUT"     envDefault:"1048576" help:"maximum bytes of a task's input: 1 to 1048576"`
	MemoryTTL    time.Duration `env:"LONGSHORE_MEMORY_TTL"    envDefault:"24h" help:"how long short-term memory is kept"`

	WorkspaceFiles int           `env:"LONGSHORE_WORKSPACE_FILES" envDefault:"10000"     help:"files and folders that a run may have"`
	WorkspaceBytes int64         `env:"LONGSHORE_WORKSPACE_BYTES" envDefault:"268435456" help:"bytes that the files of a run may have together"`
	WorkspaceKeep  time.Duration `env:"LONGSHORE_WORKSPACE_KEEP"  envDefault:"24h"       help:"how long the folder of a run that has ended stays on the machine of its worker"`
}

// Check returns an *Error.
func (s *Runs) Check() error {
	switch {
	case s.Slots < 1 || s.Slots > 100_000:
		return Errorf("LONGSHORE_SLOTS: must be 1 to 100000")
	case s.MaxAttempts < 1:
		return Errorf("LONGSHORE_MAX_ATTEMPTS: must be at least 1")
	case s.DrainTimeout <= 0 || s.ModelTimeout <= 0 || s.MemoryTTL <= 0:
		return Errorf("LONGSHORE_DRAIN_TIMEOUT, LONGSHORE_MODEL_TIMEOUT and LONGSHORE_MEMORY_TTL must be above 0")
	}
	if s.ToolTimeout < 0 {
		return Errorf("LONGSHORE_TOOL_TIMEOUT: must be above 0")
	}
	if s.BlobBytes != 0 && (s.BlobBytes < 4<<10 || s.BlobBytes > 512<<10) {
		return Errorf("LONGSHORE_BLOB_BYTES: must be 4096 to 524288")
	}
	switch {
	case s.WorkspaceFiles < 0 || s.WorkspaceFiles > 1_000_000:
		return Errorf("LONGSHORE_WORKSPACE_FILES: must be 1 to 1000000")
	case s.WorkspaceBytes < 0 || s.WorkspaceBytes > maxFileBytes:
		return Errorf("LONGSHORE_WORKSPACE_BYTES: must be 1 to %d", maxFileBytes)
	case s.WorkspaceKeep < 0 || s.WorkspaceKeep > 0 && s.WorkspaceKeep < time.Minute:
		return Errorf("LONGSHORE_WORKSPACE_KEEP: must be at least 1m")
	}
	return checkMaxInput(s.MaxInput)
}

// checkMaxInput takes 0, which the environment does not give, for the default.
func checkMaxInput(n int) error {
	if n < 0 || n > messages.MaxInput {
		return Errorf("LONGSHORE_MAX_INPUT: must be 1 to %d", messages.MaxInput)
	}
	return nil
}

// WorkspaceLimits bound the files of a run.
func (s *Runs) WorkspaceLimits() sandbox.Limits {
	return sandbox.Limits{Files: s.WorkspaceFiles, Total: s.WorkspaceBytes}
}
