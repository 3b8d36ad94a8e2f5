package contract_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher/contract"
	"github.com/longshore-run/longshore/messages/control"
)

// The guide has a row for every event and every request.
func TestGuideNamesEventsAndRequests(t *testing.T) {
	t.Parallel()
	body, err := contract.AsyncAPI("0.0.0", control.Operations())
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
	named := firstCells(readGuide(t))
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

// firstCells are the names in the first cells of tables, and how often they are there. A name that begins with a dot continues
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

// The table of requests names every field of a request whose shape it shows, and no other.
func TestGuideNamesFieldsOfRequests(t *testing.T) {
	t.Parallel()
	guide, fields := readGuide(t), requestFields(t)
	braces := regexp.MustCompile(`\{[^}]*\}`)
	_, table, _ := strings.Cut(guide, "| Subject | Request | Reply |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, " | ")
		if len(cells) != 3 {
			t.Fatalf("a row has %d cells: %s", len(cells), row)
		}
		shapes := strings.Join(braces.FindAllString(cells[1], -1), " ")
		if shapes == "" {
			continue
		}
		shapes += " " + strings.Join(regexp.MustCompile("also `[a-zA-Z]+`").FindAllString(cells[1], -1), " ")
		want, named := map[string]bool{}, map[string]bool{}
		for subject := range firstCells(row) {
			maps.Copy(want, fields[subject])
		}
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(shapes, -1) {
			named[name] = true
		}
		delete(named, "also")
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(named))); diff != "" {
			t.Errorf("the row of %s lacks (-) or has too much (+):\n%s", cells[0], diff)
		}
	}
}

// The table of a task names every field of it once. What is refused for now stands below it.
func TestGuideNamesFieldsOfATask(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(readGuide(t), "| Field | Type | Default | Limits and meaning |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	named := firstCells(table)
	fields := requestFields(t)["longshore.submit"]
	if len(fields) < 15 {
		t.Fatalf("a task has the fields %v", fields)
	}
	delete(fields, "limits") // its fields have rows of their own
	for name := range fields {
		if named[name] != 1 {
			t.Errorf("the table of a task has %d rows for %s", named[name], name)
		}
	}
}

// The requests that the guide shows fit the schema of their subject.
func TestRequestsOfTheGuideFit(t *testing.T) {
	t.Parallel()
	schemas, names, checked := resolved(t), requestSchemas(t), 0
	for _, m := range regexp.MustCompile(`nats req --raw (longshore\.[a-z_.]+) '([^']*)'`).FindAllStringSubmatch(readGuide(t), -1) {
		subject := m[1]
		if rest, ok := strings.CutPrefix(subject, "longshore.t."); ok {
			_, operation, _ := strings.Cut(rest, ".")
			subject = "longshore." + operation
		}
		schema := schemas[names[subject]]
		if schema == nil {
			t.Errorf("%s: no schema", m[1])
			continue
		}
		if err := schema.Validate(plain(t, []byte(m[2]))); err != nil {
			t.Errorf("%s %s: %v", m[1], m[2], err)
		}
		checked++
	}
	if checked < 5 {
		t.Errorf("only %d requests were found", checked)
	}
}

func readGuide(t *testing.T) string {
	t.Helper()
	guide, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(guide)
}

// requestSchemas are the names of the schemas of requests by their subject.
func requestSchemas(t *testing.T) map[string]string {
	t.Helper()
	body, err := contract.AsyncAPI("0.0.0", control.Operations())
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Channels map[string]struct {
			Address  string         `json:"address"`
			Messages map[string]any `json:"messages"`
		} `json:"channels"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, c := range doc.Channels {
		for name := range c.Messages {
			names[c.Address] = name
		}
	}
	return names
}

// requestFields are the fields of requests by their subject.
func requestFields(t *testing.T) map[string]map[string]bool {
	t.Helper()
	schemas, err := contract.Schemas(control.Operations())
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]map[string]bool{}
	for subject, name := range requestSchemas(t) {
		var s struct {
			Ref  string `json:"$ref"`
			Defs map[string]struct {
				Properties map[string]any `json:"properties"`
			} `json:"$defs"`
		}
		if err := json.Unmarshal(schemas[name], &s); err != nil {
			t.Fatal(err)
		}
		fields[subject] = map[string]bool{}
		for field := range s.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")].Properties {
			fields[subject][field] = true
		}
	}
	return fields
}
