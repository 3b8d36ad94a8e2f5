package settings

import "time"

// LogStore says what is kept of what processes log about runs.
type LogStore struct {
	LogsMaxAge   time.Duration `env:"LONGSHORE_LOGS_MAX_AGE"   envDefault:"168h"       help:"how long log entries about runs are kept"`
	LogsMaxBytes int64         `env:"LONGSHORE_LOGS_MAX_BYTES" envDefault:"268435456" help:"space for all log entries, reserved on the server's disk when their stream is created"`
}

// minLogsBytes has room for the largest entry, many times.
const minLogsBytes = 1 << 20

// Check returns an *Error.
func (s *LogStore) Check() error {
	switch {
	case s.LogsMaxAge <= 0:
		return Errorf("LONGSHORE_LOGS_MAX_AGE: must be above 0")
	case s.LogsMaxBytes < minLogsBytes:
		return Errorf("LONGSHORE_LOGS_MAX_BYTES: must be at least %d", minLogsBytes)
	}
	return nil
}
