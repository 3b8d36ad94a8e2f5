package measure

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
)

// Profile writes a CPU profile of this process until stop is called, and then to file.allocs what it has allocated.
// Without a file it does nothing.
func Profile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("write CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("write CPU profile: %w", err), f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return errors.Join(f.Close(), profileTo("allocs", file+".allocs"))
	}, nil
}

// profileTo writes one of the runtime's profiles to a file.
func profileTo(name, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write profile %s: %w", name, err)
	}
	return errors.Join(pprof.Lookup(name).WriteTo(f, 0), f.Close())
}

// Suffixed is the name of a file with a suffix; without a file it is empty.
func Suffixed(file, suffix string) string {
	if file == "" {
		return ""
	}
	return file + suffix
}
