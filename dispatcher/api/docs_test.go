package api_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher/api"
)

// The table of the guide names every operation, and no other.
func TestGuideNamesEveryOperation(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, op := range api.Operations() {
		want[op.Method+" "+op.Path] = true
	}
	named := namedIn(string(guide))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), named); diff != "" {
		t.Errorf("the table of docs/http.md lacks (-) or has too much (+):\n%s", diff)
	}
}

// namedIn are the requests in the first cells of the table: `GET /a`, or `GET`, `PUT /a` for two of one path.
func namedIn(guide string) []string {
	_, table, _ := strings.Cut(guide, "| Request | What it does |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	code := regexp.MustCompile("`([A-Z]+)( /[^`]+)?`")
	var named []string
	for row := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		var methods []string
		for _, m := range code.FindAllStringSubmatch(cell, -1) {
			methods = append(methods, m[1])
			if m[2] == "" {
				continue
			}
			for _, method := range methods {
				named = append(named, method+m[2])
			}
			methods = nil
		}
	}
	slices.Sort(named)
	return named
}
