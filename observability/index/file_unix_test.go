//go:build unix

package index_test

import (
	"os"
	"path/filepath"
	"testing"
)

// The permissions of a file that another user created beforehand are corrected.
func TestFileIsItsOwners(t *testing.T) {
	place := filepath.Join(t.TempDir(), "index.db")
	if err := os.WriteFile(place, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(place, 0o666); err != nil {
		t.Fatal(err)
	}
	x := newHarbour(t).open(place)
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{place, place + "-wal"} {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}
