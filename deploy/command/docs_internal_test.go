package command

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every command line of longshore in the pages is one that it takes: the commands, the flags and the number of arguments exist.
func TestCommandLinesOfPagesParse(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/tools/*.md", "deploy/*.md", "deploy/*/*.md", "deploy/examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	lines := 0
	for _, page := range pages {
		if strings.HasSuffix(page, "CHANGELOG.md") { // it tells of what was
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandLines(string(text)) {
			lines++
			if err := parse(line); err != nil {
				t.Errorf("%s: %s: %v", strings.TrimPrefix(page, "../../"), line, err)
			}
		}
	}
	if lines < 200 {
		t.Errorf("found %d command lines: this test looks in the wrong place", lines)
	}
}

// So is every one that the console tells people to copy.
func TestCommandLinesOfTheConsoleParse(t *testing.T) {
	t.Parallel()
	views, err := filepath.Glob("../../dispatcher/console/static/views/*.js")
	if err != nil {
		t.Fatal(err)
	}
	copied := regexp.MustCompile("command='(longshore [^']*)'|command=\"(longshore [^\"]*)\"|text=\"(longshore [^\"]*)\"|text=\\$\\{`(longshore [^`$]*)|: '(longshore [^']*)'|with: (longshore [a-z ]*)")
	lines := 0
	for _, view := range append(views, "../../dispatcher/console/static/main.js") {
		text, err := os.ReadFile(view)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range copied.FindAllStringSubmatch(string(text), -1) {
			lines++
			line := strings.TrimSpace(strings.Join(m[1:], ""))
			if err := parse(line); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(view), line, err)
			}
		}
	}
	if lines < 12 {
		t.Errorf("found %d command lines", lines)
	}
}

// commandLines are those of longshore in the code of a page, up to what belongs to the shell. Those that leave something out are
// not among them.
func commandLines(page string) []string {
	var (
		block  = regexp.MustCompile("(?s)\n *```(?:sh|console|bash)\n(.*?)\n *```")
		inline = regexp.MustCompile("`(longshore [^`\n]+)`")
		first  = regexp.MustCompile(`^\s*(?:\$ )?(?:[A-Z_]+=\S* )*(?:\./|bin/)?(longshore .*)$`)
		shell  = regexp.MustCompile(`\s*(?:#.*| [|>&;].*|\||;|&&|2>.*)$|\s[|>;&].*$|;.*$`)
	)
	var out []string
	add := func(line string) {
		if m := first.FindStringSubmatch(line); m != nil && !strings.ContainsAny(m[1], "…[") && !strings.Contains(m[1], "bash|zsh") {
			out = append(out, strings.TrimSpace(shell.ReplaceAllString(m[1], "")))
		}
	}
	for _, m := range block.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(strings.ReplaceAll(m[1], "\\\n", " ")) {
			add(strings.TrimSpace(line))
		}
	}
	for _, m := range inline.FindAllStringSubmatch(block.ReplaceAllString(page, ""), -1) {
		add(m[1])
	}
	return out
}

// parse reads a line as longshore does, without doing anything.
func parse(line string) error {
	filled := regexp.MustCompile(`'[^']*'|"[^"]*"|\$\w+`)
	args := strings.Fields(filled.ReplaceAllString(line, "filled"))[1:]
	root := tree()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if rest = cmd.Flags().Args(); !cmd.Runnable() && len(rest) > 0 {
		return fmt.Errorf("%s has no command %s", cmd.CommandPath(), rest[0])
	}
	if len(rest) == 0 || cmd.Args == nil { // text that only names a command
		return nil
	}
	return cmd.Args(cmd, rest)
}
