package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// store is the folder of the JetStream data while this process holds it.
type store struct {
	dir    string
	isTemp bool
	lock   *os.File
}

// jetStreamFolder is the name that the server itself gives its folder.
const jetStreamFolder = "jetstream"

// openStore makes dir, closes its JetStream folder to other users, and locks it against other processes.
// Only that folder is closed, because dir may be one that others use too.
func openStore(dir string) (*store, error) {
	s := &store{dir: dir, isTemp: dir == ""}
	if s.isTemp {
		temp, err := os.MkdirTemp("", "longshore-")
		if err != nil {
			return nil, fmt.Errorf("make temporary store: %w", err)
		}
		s.dir = temp
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *store) open() error {
	folder := filepath.Join(s.dir, jetStreamFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	if err := os.Chmod(folder, 0o700); err != nil { //nolint:gosec // a folder needs its x bit
		return fmt.Errorf("close store to other users: %w", err)
	}
	lock, err := lockFile(filepath.Join(s.dir, jetStreamFolder+".lock"))
	if err != nil {
		return fmt.Errorf("lock store %s: %w: if another longshore runs on it, stop that one or use another folder (--data)", s.dir, err)
	}
	s.lock = lock
	return nil
}

// close gives the store up. The lock file stays: removing it would let two processes lock two files of one name.
func (s *store) close() error {
	var err error
	if s.lock != nil {
		err = s.lock.Close() // closing unlocks
	}
	if s.isTemp {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}
