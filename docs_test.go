package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// architecture returns the rows of the table of docs/architecture.md below a heading: the names in code of each row's first cell, and
// of the others.
func architecture(t *testing.T, heading string) (rows [][2][]string) {
	t.Helper()
	guide, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(guide), heading+"\n|---|---|\n")
	if !found {
		t.Fatalf("docs/architecture.md has no table %q", heading)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	code := regexp.MustCompile("`([^`]+)`")
	names := func(cell string) (out []string) {
		for _, m := range code.FindAllStringSubmatch(cell, -1) {
			out = append(out, m[1])
		}
		return out
	}
	for row := range strings.Lines(table) {
		first, rest, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		rows = append(rows, [2][]string{names(first), names(rest)})
	}
	return rows
}

// The tree in the guide names every package once, and nothing else. Packages for the tests of others are not in it.
func TestGuideNamesEveryPackage(t *testing.T) {
	drawn := map[string]bool{}
	for _, row := range architecture(t, "| Package | What it is |") {
		for _, pkg := range row[0] {
			if drawn[pkg] {
				t.Errorf("docs/architecture.md names %s twice", pkg)
			}
			drawn[pkg] = true
		}
	}
	for line := range strings.Lines(output(t, "go", "list", "-f", "{{.ImportPath}} {{len .GoFiles}}", "./...")) {
		path, files, _ := strings.Cut(strings.TrimSpace(line), " ")
		pkg, below := strings.CutPrefix(path, module)
		if !below {
			pkg = "main.go"
		}
		if files != "0" && !drawn[pkg] && !strings.HasSuffix(pkg, "test") {
			t.Errorf("docs/architecture.md does not name the package %s", pkg)
		}
		delete(drawn, pkg)
	}
	for pkg := range drawn {
		t.Errorf("docs/architecture.md names %s, which is no package", pkg)
	}
}

// The walk of one task in the guide passes through few files, each of which declares what is said to happen in it.
func TestWalkOfOneTask(t *testing.T) {
	const most = 15
	walk := architecture(t, "| File | What happens there |")
	if len(walk) > most {
		t.Errorf("a task passes through %d files, which is more than %d", len(walk), most)
	}
	for _, row := range walk {
		file := row[0][0]
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		declared := map[string]bool{}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				declared[f.Name.Name] = true
			}
		}
		if !declared[row[1][0]] {
			t.Errorf("%s does not declare %s", file, row[1][0])
		}
	}
}
