//go:build amd64 || arm64

package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// diskEvery is how often the files of a program are measured while it runs; seldom where that takes long.
const diskEvery = 500 * time.Millisecond

// overfull reports whether the program wrote more into its workspace or its temporary folder than it may. What cannot be
// measured, because it changes, is measured the next time.
func (r *running) overfull() bool {
	if w := r.command.Workspace; w != nil {
		if over, err := w.Overfull(); err == nil && over {
			return true
		}
	}
	return r.place.temp != "" && sizeOf(r.place.temp, r.limits.Temp) > r.limits.Temp
}

// sizeOf counts the bytes of the files in a folder, and a block for each entry, up to a little over most.
func sizeOf(dir string, most int64) int64 {
	const entry = 4096
	var total int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it was removed in between
		}
		total += entry
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		if total > most {
			return fs.SkipAll
		}
		return nil
	})
	return total
}

// removeTemp removes a temporary folder with whatever modes the program gave to folders in it.
func removeTemp(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a folder that is about to be removed
		}
		return nil
	})
	return os.RemoveAll(dir)
}
