package files

import (
	"context"

	"github.com/longshore-run/longshore/tools"
)

type makeArgs struct {
	FolderPath string `json:"folderPath" jsonschema:"Path relative to the workspace, such as notes/2026"`
}

func makeDir(_ context.Context, c tools.Call, in makeArgs) (tools.Result, error) {
	if err := c.Workspace.Mkdir(in.FolderPath); err != nil {
		return failure(err)
	}
	return tools.Text("The folder " + in.FolderPath + " is there"), nil
}
