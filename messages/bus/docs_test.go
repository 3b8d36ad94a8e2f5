package bus_test

import (
	"os"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages/bus/bustest"
)

// The table of streams in the guide names every stream and bucket, and no other.
func TestGuideNamesEveryStream(t *testing.T) {
	guide, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(guide), "| Stream | Subjects | Kind | Holds |\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	named := map[string]bool{}
	for row := range strings.Lines(table) {
		name, _, _ := strings.Cut(strings.TrimPrefix(row, "| `"), "`")
		if named[name] {
			t.Errorf("%s is there twice", name)
		}
		named[name] = true
	}
	_, nc := bustest.OpenNew(t)
	for name := range bustest.NewJetStream(t, nc).StreamNames(bustest.Context(t)).Name() {
		if !named[name] {
			t.Errorf("docs/architecture.md does not name the stream %s", name)
		}
		delete(named, name)
	}
	for name := range named {
		t.Errorf("docs/architecture.md names %s, which is no stream", name)
	}
}
