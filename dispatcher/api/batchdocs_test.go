package api_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The guide shows the lines of a batch and of its answer as they are.
func TestGuideShowsTheAnswerToABatch(t *testing.T) {
	h := open(t)
	guide, err := os.ReadFile("../../docs/batches.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## Over HTTP\n")
	blocks := strings.Split(section, "```")
	if len(blocks) < 5 {
		t.Fatal("docs/batches.md has no two examples under Over HTTP")
	}
	body, answer := strings.TrimPrefix(blocks[1], "json\n"), strings.TrimPrefix(blocks[3], "json\n")
	var got strings.Builder
	for _, line := range h.report("/v1/batches?id=b1&dryRun=true", body) {
		if line.Check != nil {
			if len(line.Check.Errors) != line.Check.Invalid {
				t.Errorf("%+v", line.Check)
			}
			line.Check.Errors = nil
		}
		encoded, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(encoded, '\n'))
	}
	if diff := cmp.Diff(strings.ReplaceAll(answer, `,"errors":[…]`, ""), got.String()); diff != "" {
		t.Error(diff)
	}
}
