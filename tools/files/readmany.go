package files

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
)

// maxMany is how many files one call may name.
const maxMany = 100

// noteRoom is left for the note about files that did not fit.
const noteRoom = 10_000

type readManyArgs struct {
	FilePaths []string `json:"filePaths" jsonschema:"Paths relative to the workspace, 100 at most"`
}

func readFiles(ctx context.Context, c tools.Call, in readManyArgs) (tools.Result, error) {
	if n := len(in.FilePaths); n == 0 || n > maxMany {
		return tools.Failure(fmt.Sprintf("filePaths: must have 1 to %d paths, not %d", maxMany, n)), nil
	}
	var text strings.Builder
	var left []string
	returned, failed := 0, 0
	for _, name := range in.FilePaths {
		if ctx.Err() != nil {
			return tools.Result{}, context.Cause(ctx)
		}
		part, fits, err := one(c.Workspace, name, maxPiece-noteRoom-text.Len())
		switch {
		case err != nil:
			pe, ok := errors.AsType[*sandbox.PathError](err)
			if !ok {
				return tools.Result{}, err
			}
			part = "== " + pe.Error() + "\n"
			failed++
		case !fits:
			left = append(left, name)
			continue
		default:
			returned++
		}
		if text.Len()+len(part) > maxPiece-noteRoom {
			left = append(left, name)
			continue
		}
		text.WriteString(part)
	}
	if len(left) > 0 {
		note := fmt.Sprintf("== %d files do not fit; read them with read_file or another read_files:", len(left))
		for _, name := range left {
			if text.Len()+len(note)+len(name) > maxPiece {
				note += " …"
				break
			}
			note += " " + line(name)
		}
		text.WriteString(note)
	}
	r := tools.Text(strings.TrimSuffix(text.String(), "\n"))
	if returned == 0 && len(left) == 0 {
		r = tools.Failure(strings.TrimSuffix(text.String(), "\n"))
	}
	r.Meta = map[string]any{"files": returned, "failed": failed, "truncated": len(left) > 0}
	return r, nil
}

// one is the part of a file in the answer, unless it has no room for it.
func one(w *sandbox.Workspace, name string, room int) (part string, fits bool, err error) {
	size, err := w.Stat(name)
	if err != nil {
		return "", false, err
	}
	if size > int64(room) {
		return "", false, nil
	}
	data, err := w.Read(name)
	if err != nil {
		return "", false, err
	}
	if !isText(data) {
		return "", false, &sandbox.PathError{Path: name, Reason: fmt.Sprintf("is not UTF-8 text but %d bytes of something else", len(data))}
	}
	return fmt.Sprintf("== %s (%d bytes)\n%s\n", line(name), len(data), data), true, nil
}
