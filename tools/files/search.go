package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
)

// Limits of a search. A match takes time in proportion to the text and to the program that a pattern is made into.
const (
	maxPattern  = 500       // bytes
	maxProgram  = 1000      // instructions
	maxContext  = 5         // lines before and after a match
	maxMatches  = 500       // lines of one answer
	someMatches = 100       // by default
	maxLine     = 64 << 10  // bytes of a line that are looked at
	maxShown    = 300       // bytes of a line that are shown
	maxScanned  = 256 << 20 // bytes of one search
	leftForNote = maxPiece - 500
)

type searchArgs struct {
	Pattern    string `json:"pattern,omitempty"    jsonschema:"Regular expression (RE2) for a line, such as func \\w+Error; (?i) at its beginning ignores case"`
	Glob       string `json:"glob,omitempty"       jsonschema:"Names of files to search: *.go, docs/**/*.md, {a,b}.txt; all files by default"`
	Context    int    `json:"context,omitempty"    jsonschema:"Lines to show before and after each match, 5 at most; 0 by default"`
	MaxMatches int    `json:"maxMatches,omitempty" jsonschema:"Lines to find at most; 100 by default, 500 at most"`
}

func searchFiles(ctx context.Context, c tools.Call, in searchArgs) (tools.Result, error) {
	s, refusal := newSearch(in)
	if refusal != "" {
		return tools.Failure(refusal), nil
	}
	names, err := c.Workspace.List(ctx)
	if errors.Is(err, sandbox.ErrMore) {
		s.stopped = "the workspace has more files than are listed"
	} else if err != nil {
		return tools.Result{}, err
	}
	for _, name := range names {
		if !s.glob.match(name) {
			continue
		}
		more, err := s.file(ctx, c.Workspace, name)
		if err != nil {
			return tools.Result{}, err
		}
		if !more {
			break
		}
	}
	return s.result(), nil
}

// search is one search under way.
type search struct {
	expr    *regexp.Regexp // nil: names are looked for
	glob    *glob
	around  int
	most    int
	text    strings.Builder
	matches int
	files   int // that were searched
	skipped int // that are no text, or could not be read
	scanned int
	stopped string // why there may be more
}

// newSearch returns what is wrong with the arguments, in words for the model.
func newSearch(in searchArgs) (_ *search, refusal string) {
	s := &search{around: in.Context, most: cmp.Or(in.MaxMatches, someMatches)}
	switch {
	case in.Pattern == "" && in.Glob == "":
		return nil, "pattern: give a pattern, a glob or both"
	case in.Context < 0 || in.Context > maxContext:
		return nil, fmt.Sprintf("context: must be 0 to %d", maxContext)
	case s.most < 1 || s.most > maxMatches:
		return nil, fmt.Sprintf("maxMatches: must be 1 to %d", maxMatches)
	}
	var err error
	if in.Glob != "" {
		if s.glob, err = parseGlob(in.Glob); err != nil {
			return nil, "glob: " + err.Error()
		}
	}
	if in.Pattern != "" {
		if s.expr, err = parsePattern(in.Pattern); err != nil {
			return nil, "pattern: " + err.Error()
		}
	}
	return s, ""
}

func parsePattern(text string) (*regexp.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("must not be longer than %d bytes", maxPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, errors.New(strict.Clip(err.Error(), maxPattern) + " (the syntax is RE2's: no look-around and no back-references)")
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, errors.New("repeats too much; use smaller counts")
	}
	return regexp.Compile(text)
}

// file searches a file, and reports whether to continue with the next.
func (s *search) file(ctx context.Context, w *sandbox.Workspace, name string) (more bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if s.expr == nil {
		if s.matches == s.most {
			s.stopped = fmt.Sprintf("there are more than %d", s.most)
			return false, nil
		}
		s.matches++
		return s.add(line(name) + "\n"), nil
	}
	data, err := w.Read(name)
	if _, ok := errors.AsType[*sandbox.PathError](err); ok || err == nil && !isText(data) {
		s.skipped++ // it is too large, has just gone, or is not for tools
		return true, nil
	}
	if err != nil {
		return false, err
	}
	s.files++
	if s.scanned += len(data); s.scanned > maxScanned {
		s.stopped = fmt.Sprintf("%d MiB were searched", maxScanned>>20)
		return false, nil
	}
	return s.lines(ctx, line(name), data)
}

// lines searches a text line by line.
func (s *search) lines(ctx context.Context, name string, data []byte) (more bool, err error) {
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	told := -1 // the last line that is in the answer
	for i, text := range lines {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		at := s.expr.FindIndex(text[:min(len(text), maxLine)])
		if at == nil {
			continue
		}
		if s.matches == s.most {
			s.stopped = fmt.Sprintf("there are more than %d", s.most)
			return false, nil
		}
		s.matches++
		if s.around > 0 && s.text.Len() > 0 && (told < 0 || i-s.around > told+1) {
			s.text.WriteString("--\n")
		}
		for j := max(told+1, i-s.around); j <= min(i+s.around, len(lines)-1); j++ {
			mark, from := "-", 0
			if j == i {
				mark, from = ":", at[0]
			} else if j > i && s.expr.Match(lines[j][:min(len(lines[j]), maxLine)]) {
				break // it has a turn of its own
			}
			if told = j; !s.add(fmt.Sprintf("%s%s%d%s %s\n", name, mark, j+1, mark, shown(lines[j], from))) {
				return false, nil
			}
		}
	}
	return true, nil
}

// add writes a line of the answer, unless it is full.
func (s *search) add(text string) bool {
	if s.text.Len()+len(text) > leftForNote {
		s.stopped = "the answer is full"
		return false
	}
	s.text.WriteString(text)
	return true
}

// shown is what the model sees of a line: in a long one, what is around the byte from.
func shown(text []byte, from int) string {
	text = bytes.TrimSuffix(text, []byte("\r"))
	if len(text) <= maxShown {
		return string(text)
	}
	begin := max(0, min(from-maxShown/4, len(text)-maxShown))
	end := begin + maxShown
	for begin > 0 && !utf8.RuneStart(text[begin]) {
		begin--
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	out := string(text[begin:end])
	if begin > 0 {
		out = "…" + out
	}
	if end < len(text) {
		out += "…"
	}
	return out
}

func (s *search) result() tools.Result {
	text := strings.TrimSuffix(s.text.String(), "\n")
	if text == "" {
		text = fmt.Sprintf("(Nothing was found in %d files.)", s.files)
		if s.expr == nil {
			text = "(No file has such a name.)"
		}
	}
	if s.skipped > 0 {
		text += fmt.Sprintf("\n(%d files are not text or too large and were left out.)", s.skipped)
	}
	if s.stopped != "" {
		text += "\n(There may be more: " + s.stopped + ". A narrower pattern or glob finds the rest.)"
	}
	r := tools.Text(text)
	r.Meta = map[string]any{"matches": s.matches, "truncated": s.stopped != ""}
	if s.expr != nil {
		r.Meta["files"], r.Meta["skipped"] = s.files, s.skipped
	}
	return r
}
