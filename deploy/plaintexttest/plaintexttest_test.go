package plaintexttest_test

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore-run/longshore/deploy/plaintexttest"
)

func TestWordsAreFound(t *testing.T) {
	t.Parallel()
	w := plaintexttest.Plant("task", "file")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"clear": "so " + w["task"] + ".", "hex": hex.EncodeToString([]byte("so " + w["task"])),
		"base64 0": base64.StdEncoding.EncodeToString([]byte("abc" + w["task"] + "d")),
		"base64 1": base64.StdEncoding.EncodeToString([]byte("abcd" + w["task"] + "de")),
		"base64 2": base64.URLEncoding.EncodeToString([]byte("abcde" + w["task"])),
	} {
		path := filepath.Join(dir, name, "below", "it")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if found := w.In(t, filepath.Join(dir, name)); len(found) != 1 || found[0].Place != "task" || found[0].File != path {
			t.Errorf("%s: found %v", name, found)
		}
	}
	if missing := w.Missing(t, dir); len(missing) != 1 || missing[0] != "file" {
		t.Errorf("missing: %v", missing)
	}
}
