//go:build unix

package fleet_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The README's lines about a fleet that stays up do what they say, one after the other, and none of them fails.
func TestFleetOfTheREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	const address = "export NATS_URL=nats://127.0.0.1:4222\n"
	_, after, found := strings.Cut(string(readme), "```sh\n"+address)
	block, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatal("the README has no such block")
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(dir, "bin", "longshore")); err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(dir, "ready.json")
	dev := spawn(t, "dev", nil, binary, "dev", "--data", filepath.Join(dir, "data"), "--addr", "127.0.0.1:0",
		"--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0", "--ready-file", ready)
	dev.line("longshore is ready")
	var at struct {
		NATS string `json:"nats"`
	}
	data, err := os.ReadFile(ready)
	if err == nil {
		err = json.Unmarshal(data, &at)
	}
	if err != nil {
		t.Fatal(err)
	}
	script := "set -eu\ncd " + dir + "\nexport NATS_URL=" + at.NATS + "\n" + block
	sh := spawn(t, "the README", nil, "sh", "-c", script)
	if code := sh.wait(); code != 0 {
		t.Fatalf("it ended with %d: %s", code, strings.Join(sh.log(), "\n"))
	}
	out := sh.out.String()
	for _, want := range []string{"status     completed\n", "input      Say hello\n", " is cancelled\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}
