package command

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command that would start a fleet of its own offers the agents of the folder that this fleet would read.
func TestAgentsOfOwnFleetAreOffered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writer := "apiVersion: longshore.run/v1\nkind: Agent\nmetadata:\n  name: writer\nspec:\n  instructions: Write.\n"
	if err := os.WriteFile(filepath.Join(dir, "writer.yaml"), []byte(writer), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"run --agents " + dir + " --agent w":             "writer\n:4\n",
		"eval suite.yaml --agents " + dir + " --agent w": "writer\n:4\n",
		"run --agents " + dir + " --agent x":             ":4\n",
		"run --agents " + dir + "/none --agent w":        ":4\n",
		"run --agent w": ":4\n", // nothing that runs on this machine is asked
	} {
		var out bytes.Buffer
		p := Process{Version: "test", Environ: func() []string { return nil }, Stdout: &out, Stderr: io.Discard}
		root := p.commands()
		root.SetArgs(append([]string{"__complete"}, strings.Fields(line)...))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%s: offered %q, want %q", line, out.String(), want)
		}
	}
}
