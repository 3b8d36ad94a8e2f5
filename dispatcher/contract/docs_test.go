package contract_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/contract"
)

// The guide has a row for every event and every request.
func TestGuideNamesEventsAndRequests(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	body, err := contract.AsyncAPI("0.0.0")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Channels map[string]struct {
			Address    string `json:"address"`
			Parameters struct {
				Name struct {
					Enum []string `json:"enum"`
				} `json:"name"`
			} `json:"parameters"`
		} `json:"channels"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	named := firstCells(string(guide))
	for _, c := range doc.Channels {
		want := c.Parameters.Name.Enum
		if strings.HasPrefix(c.Address, "longshore.") {
			want = []string{c.Address}
		}
		for _, name := range want {
			if named[name] == 0 {
				t.Errorf("no table of docs/events.md has a row for %s", name)
			}
			if named[name] > 1 && strings.HasPrefix(name, "longshore.") {
				t.Errorf("docs/events.md has %d rows for %s", named[name], name)
			}
		}
	}
}

// firstCells are the names in the first cells of tables, and how often they are there. A name that begins with a dot goes on
// from the first of its cell: `longshore.agents.get`, `.history` are two.
func firstCells(guide string) map[string]int {
	named := map[string]int{}
	for line := range strings.Lines(guide) {
		cell, ok := strings.CutPrefix(line, "| `")
		if !ok {
			continue
		}
		cell, _, _ = strings.Cut(cell, " |")
		var stem string
		for i, name := range strings.Split(cell, "`, `") {
			name = strings.Trim(name, "`")
			if i == 0 {
				stem = name[:max(strings.LastIndex(name, "."), 0)]
			} else if strings.HasPrefix(name, ".") {
				name = stem + name
			}
			named[name]++
		}
	}
	return named
}
