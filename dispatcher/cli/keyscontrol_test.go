package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/messages/bus"
)

// The secret goes to the file, for its owner alone, and the public key to the output. No file is written over.
func TestKeysControl(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.key")
	create := func(args ...string) (string, error) {
		root := &cobra.Command{Use: "longshore", SilenceUsage: true, SilenceErrors: true}
		root.AddCommand(cli.Commands(nil)...)
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append([]string{"keys", "control"}, args...))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := create(path)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key, err := bus.ParseSigningKey(string(seed))
	if err != nil || strings.TrimSpace(out) != key.Public() || strings.Contains(out, strings.TrimSpace(string(seed))) {
		t.Errorf("printed %q, %v", out, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := create(path); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a second time: %v", err)
	}
	if again, _ := os.ReadFile(path); !bytes.Equal(again, seed) {
		t.Error("the key was written over")
	}
	out, err = create(path+"2", "-o", "json")
	var got map[string]string
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || len(got) != 1 {
		t.Fatalf("printed %q, %v", out, err)
	}
	if seed, err = os.ReadFile(path + "2"); err != nil {
		t.Fatal(err)
	}
	if key, err = bus.ParseSigningKey(string(seed)); err != nil || got["key"] != key.Public() {
		t.Errorf("printed %q, %v", out, err)
	}
}
