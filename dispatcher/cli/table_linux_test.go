package cli_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/cli/report"
)

// A table fits in the terminal by cutting prose, never what people copy; where the output is no terminal it is whole.
func TestTablesFitTheTerminal(t *testing.T) {
	f := newFleet(t)
	input := strings.Repeat("Count the containers. 船 ", 6)
	id := strings.Repeat("i", 40)
	f.run(t, "submit", "--id", id, input)
	whole, _ := f.run(t, "list")
	for _, width := range []uint16{100, 110, 40} {
		p := newPTY(t)
		p.Resize(width, 24)
		root := withCommands(f.connect, report.Options{})
		root.SetOut(p.Slave)
		root.SetArgs([]string{"list"})
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.waitForLines(2)
		rows := strings.Split(strings.ReplaceAll(p.Shown(), "\r", ""), "\n")
		if !strings.HasPrefix(rows[1], id+"  default  queued  ") {
			t.Errorf("at %d columns:\n%s", width, p.Shown())
		}
		if wide := len([]rune(rows[1])) + strings.Count(rows[1], "船"); wide >= int(width) && width >= 100 || len(rows[1]) >= len(strings.Split(whole, "\n")[1]) {
			t.Errorf("%d columns at %d:\n%s", wide, width, p.Shown())
		}
	}
	if !strings.Contains(whole, strings.Repeat("Count the containers. 船 ", 2)) {
		t.Errorf("not on a terminal:\n%s", whole)
	}
}
