package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/tools"
)

// maxShownLines is at how many lines a failure says that a text was found.
const maxShownLines = 10

type editArgs struct {
	FilePath string `json:"filePath"      jsonschema:"Path relative to the workspace, such as notes/a.txt"`
	Old      string `json:"old"           jsonschema:"Text to replace, exactly as it is in the file"`
	New      string `json:"new"           jsonschema:"Text to put in its place"`
	All      bool   `json:"all,omitempty" jsonschema:"Replace every occurrence; by default the text must occur exactly once"`
}

// edit is edit_file.
type edit struct{ tools.Tool }

var _ tools.Weigher = edit{}

// Weight implements tools.Weigher: the file as it is and as it becomes, both whole.
func (edit) Weight(c *tools.Call) int64 {
	var in editArgs
	if c.Workspace == nil || json.Unmarshal(c.Arguments, &in) != nil {
		return 0
	}
	size, err := c.Workspace.Stat(in.FilePath)
	if err != nil {
		return 0 // the call fails without reading it
	}
	return tools.DefaultWeight + size + in.makes(size)
}

// makes is how many bytes become of a file of a size, at most.
func (in editArgs) makes(size int64) int64 {
	grows := max(0, int64(len(in.New)-len(in.Old)))
	if !in.All || in.Old == "" {
		return size + grows
	}
	return min(maxEdited, size+size/int64(len(in.Old))*grows)
}

// maxCounted is how often a text is counted in a file.
const maxCounted = 1000

// mismatch is a failure that the model can correct.
type mismatch string

func (m mismatch) Error() string { return string(m) }

func editFile(_ context.Context, c tools.Call, in editArgs) (tools.Result, error) {
	switch in.Old {
	case "":
		return tools.Failure("old: must not be empty; to make a file, or to replace all of it, use write_file"), nil
	case in.New:
		return tools.Failure("new: is the same as old, so nothing would change"), nil
	}
	found, size := 0, 0
	err := c.Workspace.Edit(in.FilePath, func(old []byte) ([]byte, error) {
		if !isText(old) {
			return nil, mismatch(notText(in.FilePath, old))
		}
		var data []byte
		var err error
		if data, found, err = in.replace(old); err != nil {
			return nil, err
		}
		size = len(data)
		if c.Begin != nil {
			return data, c.Begin()
		}
		return data, nil
	})
	if m, ok := errors.AsType[mismatch](err); ok {
		return tools.Failure(string(m)), nil
	}
	if err != nil {
		return failure(err)
	}
	times := "once"
	if found > 1 {
		times = fmt.Sprintf("%d times", found)
	}
	r := tools.Text(fmt.Sprintf("Replaced the text %s in %s", times, in.FilePath))
	r.Files = []string{path.Clean(in.FilePath)}
	r.Meta = map[string]any{"bytes": size, "replaced": found}
	return r, nil
}

func (in editArgs) replace(data []byte) (out []byte, found int, err error) {
	old := []byte(in.Old)
	lines := occurrences(data, old)
	switch {
	case len(lines) == 0:
		return nil, 0, mismatch(in.FilePath + ": old is not in the file; it must be there exactly as given, white space and line ends included")
	case in.All:
		found = bytes.Count(data, old)
		// A file grows by the product of two sizes, each of which is bounded, and so must be what is made of them.
		if grown := len(data) + found*(len(in.New)-len(in.Old)); grown > maxEdited {
			return nil, 0, mismatch(fmt.Sprintf("%s: would have %d bytes; a file that is edited may have %d", in.FilePath, grown, maxEdited))
		}
		return bytes.ReplaceAll(data, old, []byte(in.New)), found, nil
	case len(lines) > 1:
		times := strconv.Itoa(len(lines))
		if len(lines) == maxCounted {
			times = "at least " + times
		}
		shown := make([]string, 0, maxShownLines)
		for _, n := range lines[:min(len(lines), maxShownLines)] {
			shown = append(shown, strconv.Itoa(n))
		}
		more := ""
		if len(lines) > maxShownLines {
			more = " …"
		}
		return nil, 0, mismatch(fmt.Sprintf("%s: old occurs %s times in the file, on lines %s%s; give more of the text around the place that you mean, or set all",
			in.FilePath, times, strings.Join(shown, ", "), more))
	default:
		return bytes.Replace(data, old, []byte(in.New), 1), 1, nil
	}
}

// maxEdited is how many bytes an edit makes of a file at most, whatever the workspace allows.
const maxEdited = 16 << 20

// occurrences are the lines at which a text begins, from 1, of the first places where it does: they may overlap.
func occurrences(data, text []byte) []int {
	var lines []int
	for at, line := 0, 1; ; {
		n := bytes.Index(data[at:], text)
		if n < 0 || len(lines) == maxCounted {
			return lines
		}
		line += bytes.Count(data[at:at+n], []byte("\n"))
		lines = append(lines, line)
		if data[at+n] == '\n' {
			line++
		}
		at += n + 1
	}
}
