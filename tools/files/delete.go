package files

import (
	"context"
	"path"

	"github.com/longshore-run/longshore/tools"
)

type deleteArgs struct {
	Path string `json:"path" jsonschema:"Path of a file or of an empty folder, relative to the workspace"`
}

func deleteFile(_ context.Context, c tools.Call, in deleteArgs) (tools.Result, error) {
	if err := c.Workspace.Remove(in.Path); err != nil {
		return failure(err)
	}
	r := tools.Text("Deleted " + in.Path)
	r.Meta = map[string]any{"path": path.Clean(in.Path)}
	return r, nil
}
