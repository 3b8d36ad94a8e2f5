package folder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is kept of the folder is removed once it is back in its place, and never before.
func TestUndo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails bool
		want  string
	}{
		"works": {false, "no space: the folder is as it was"},
		"fails": {true, "no space; the folder could not be made as it was: it is locked: what it had is in its folder .longshore-x"},
	} {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		if err := errors.Join(root.Mkdir(".longshore-x", 0o700), root.WriteFile("a.txt", []byte("mine"), 0o600)); err != nil {
			t.Fatal(err)
		}
		w := &writing{root: root, tmp: ".longshore-x"}
		if err := errors.Join(w.keep(0, "a.txt"), w.remove("a.txt")); err != nil {
			t.Fatal(err)
		}
		kept := "a.txt"
		if tc.fails {
			w.done[0] = func() error { return errors.New("it is locked") }
			kept = own(w.tmp, "old", 0)
		}
		if err := w.undo(errors.New("no space")); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
		if got, err := os.ReadFile(filepath.Join(dir, kept)); err != nil || string(got) != "mine" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || strings.HasPrefix(left[0].Name(), temporary) != tc.fails {
			t.Errorf("%s: %v, %v", name, left, err)
		}
	}
}
