package settings

// MemoryLimit is how much memory a process may take.
type MemoryLimit struct {
	Bytes int64 `env:"LONGSHORE_MEMORY_LIMIT" envDefault:"0" help:"bytes of memory for the process; a worker lets runs wait that would exceed it (default: three quarters of what the cgroup may have, or half of the machine's)"`
}

// minMemoryLimit is what a worker needs for one run that is as large as a run may be.
const minMemoryLimit = 128 << 20

// Check returns an *Error.
func (s *MemoryLimit) Check() error {
	if s.Bytes != 0 && s.Bytes < minMemoryLimit {
		return Errorf("LONGSHORE_MEMORY_LIMIT: must be at least %d bytes, which is 128 MiB", minMemoryLimit)
	}
	return nil
}
