package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/longshore-run/longshore/deploy/fleet"
)

// removeReady removes the file of an earlier fleet, so that what waits for the file waits for this fleet. It checks that
// the folder exists.
func removeReady(file string) error {
	if file == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeReady writes the addresses at once, so that a reader never sees half of them.
func writeReady(file string, dev *fleet.Dev) error {
	body, err := json.Marshal(map[string]string{"api": dev.Scheme + "://" + dev.API, "nats": dev.NATS, "redis": dev.Redis})
	if err != nil {
		return fmt.Errorf("encode addresses: %w", err)
	}
	temp := file + ".tmp"
	if err := os.WriteFile(temp, append(body, '\n'), 0o600); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	if err := os.Rename(temp, file); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	return nil
}
