package files

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
)

type writeManyArgs struct {
	Files []writeArgs `json:"files" jsonschema:"The files, 100 at most"`
}

func (in writeManyArgs) paths() []string {
	all := make([]string, len(in.Files))
	for i, f := range in.Files {
		all[i] = f.FilePath
	}
	return all
}

func writeFiles(ctx context.Context, c tools.Call, in writeManyArgs) (tools.Result, error) {
	if n := len(in.Files); n == 0 || n > maxMany {
		return tools.Failure(fmt.Sprintf("files: must have 1 to %d files, not %d", maxMany, n)), nil
	}
	bytes := 0
	all, names := make([]sandbox.File, len(in.Files)), make([]string, len(in.Files))
	for i, f := range in.Files {
		all[i], names[i] = sandbox.File{Name: f.FilePath, Data: []byte(f.Content)}, path.Clean(f.FilePath)
		bytes += len(f.Content)
	}
	if err := c.Workspace.WriteAll(ctx, all, c.Begin); err != nil {
		if pe, ok := errors.AsType[*sandbox.PathError](err); ok {
			return tools.Failure(pe.Error() + " (none of the files was written)"), nil
		}
		return tools.Result{}, err
	}
	r := tools.Text(fmt.Sprintf("Wrote %d files with %d bytes", len(all), bytes))
	r.Files = names
	r.Meta = map[string]any{"files": len(all), "bytes": bytes}
	return r, nil
}
