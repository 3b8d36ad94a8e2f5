// Package docs_test checks what the pages say against the code, and the English of both.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

const module = "github.com/longshore-run/longshore/"

// The tests read the whole repository.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// output is what a command prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return string(out)
}

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

// The walk of one task in the guide passes through few files, each of which declares the function that is named first.
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

// Every test that a page names as proof exists.
func TestPagesNameTestsThatExist(t *testing.T) {
	var (
		name     = regexp.MustCompile("`((?:Test|Fuzz|Example|Benchmark)[A-Z]\\w*)`")
		declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example|Benchmark)\w*)\(`)
	)
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	tests := map[string]bool{}
	for file := range strings.FieldsSeq(output(t, "git", "ls-files", "*_test.go")) {
		for _, m := range declared.FindAllStringSubmatch(read(file), -1) {
			tests[m[1]] = true
		}
	}
	named := 0
	for page := range strings.FieldsSeq(output(t, "git", "ls-files", "*.md")) {
		for _, m := range name.FindAllStringSubmatch(read(page), -1) {
			if named++; page != "CHANGELOG.md" && !tests[m[1]] {
				t.Errorf("%s names %s, which is no test", page, m[1])
			}
		}
	}
	if named < 100 {
		t.Errorf("found the names of %d tests: this test looks in the wrong place", named)
	}
}

// Words that a native speaker would not write there, or that the glossary of docs/architecture.md replaced, and what to write instead.
var unplain = map[string]string{
	`(goes|go|went|going|gone) on`:      "continues, is still running",
	`(is|are|was|were|be|been) told of`: "is notified of, is told about",
	`(hears?|heard) of`:                 "learns of, sees",
	`(nobody|somebody|whoever|noone)`:   "the caller, the worker, no one thing by its name",
	`for ever`:                          "forever",
	`tells (whether|if)`:                "reports whether",
	`not (\S+ ){0,4}any more`:           "no longer",
	`what is there`:                     "what it is, by its name",
	`that is none`:                      "not a …",
	`looks? after`:                      "maintains, tunes",
	`front door`:                        "the HTTP API",
	`(heeds?|bury|buries|buried)`:       "apply, dead-letter",
	`(turnstile|suspect place)`:         "commit limiter, quarantine",
}

// codeOfPages is code in a page, blocks and spans.
var codeOfPages = regexp.MustCompile("(?s)```.*?\n *```|`[^`\n]*`")

// Comments and pages are in plain English.
func TestPlainEnglish(t *testing.T) {
	rules := map[*regexp.Regexp]string{}
	for words, instead := range unplain {
		rules[regexp.MustCompile(`(?i)\b`+words+`\b`)] = instead
	}
	check := func(where, text string) {
		text = strings.Join(strings.Fields(text), " ")
		for rule, instead := range rules {
			if found := rule.FindString(text); found != "" {
				t.Errorf("%s: %q: rather %s", where, found, instead)
			}
		}
	}
	files := token.NewFileSet()
	for name := range strings.FieldsSeq(output(t, "git", "ls-files", "*.go", "*.md")) {
		switch {
		case strings.HasSuffix(name, "_test.go") && name == "docs_test.go", name == "CHANGELOG.md":
		case strings.HasSuffix(name, ".go"):
			parsed, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range parsed.Comments {
				check(files.Position(group.Pos()).String(), regexp.MustCompile("(?m)^\t.*$").ReplaceAllString(group.Text(), ""))
			}
		default:
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for paragraph := range strings.SplitSeq(codeOfPages.ReplaceAllString(string(text), ""), "\n\n") {
				check(name, paragraph)
			}
		}
	}
}

// Every link from a page to another file of the repository leads to one that is there, and to a heading that it has.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pages := strings.Fields(output(t, "git", "ls-files", "*.md"))
	if len(pages) < 100 {
		t.Fatalf("found %d pages: this test looks in the wrong place", len(pages))
	}
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(codeOfPages.ReplaceAllString(read(page), ""), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, ":") { // of another site
				continue
			}
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads to no file", page, m[1])
				continue
			}
			if anchor != "" && !anchors(read(target))[anchor] {
				t.Errorf("%s: %s leads to no heading", page, m[1])
			}
		}
	}
}

// anchors are those that GitHub gives the headings of a page.
func anchors(page string) map[string]bool {
	out, fenced := map[string]bool{}, false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if fenced || !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		out[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, strings.TrimSpace(title))] = true
	}
	return out
}
