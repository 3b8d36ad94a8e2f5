package files_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/sandbox"
)

// The example of the page is what the tools do.
func TestExampleOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/tools/files.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```text\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the page has no example")
	}
	d := newDesk(t, sandbox.Limits{})
	var got strings.Builder
	for line := range strings.Lines(example) {
		tool, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if tool == ">" || tool == "!" {
			continue
		}
		got.WriteString(line)
		text := d.call(t, tool, args)
		mark := "> "
		if after, failed := strings.CutPrefix(text, "! "); failed {
			text, mark = after, "! "
		}
		for l := range strings.SplitSeq(text, "\n") {
			got.WriteString(strings.TrimSpace(mark+l) + "\n")
		}
	}
	if diff := cmp.Diff(example, got.String()); diff != "" {
		t.Errorf("example (-page +tools):\n%s", diff)
	}
	for _, tool := range all(t) {
		if !strings.Contains(string(page), "\n| `"+tool.Spec().Name+"` | "+string(tool.Spec().Effect)+" | ") {
			t.Errorf("the page's table has no row of %s with its effect, %s", tool.Spec().Name, tool.Spec().Effect)
		}
	}
}
