package files

import (
	"context"
	"path"

	"github.com/longshore-run/longshore/tools"
)

type makeArgs struct {
	FolderPath string `json:"folderPath" jsonschema:"Path relative to the workspace, such as notes/2026"`
}

func makeDir(_ context.Context, c tools.Call, in makeArgs) (tools.Result, error) {
	if err := c.Workspace.Mkdir(in.FolderPath); err != nil {
		return failure(err)
	}
	r := tools.Text("The folder " + in.FolderPath + " is there")
	r.Meta = map[string]any{"path": path.Clean(in.FolderPath)}
	return r, nil
}
