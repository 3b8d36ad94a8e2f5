package files

import (
	"context"
	"path"

	"github.com/longshore-run/longshore/tools"
)

type moveArgs struct {
	From string `json:"from" jsonschema:"Path of the file relative to the workspace, such as notes/a.txt"`
	To   string `json:"to"   jsonschema:"Its new path"`
}

func moveFile(_ context.Context, c tools.Call, in moveArgs) (tools.Result, error) {
	if err := c.Workspace.Move(in.From, in.To); err != nil {
		return failure(err)
	}
	r := tools.Text("Moved " + in.From + " to " + in.To)
	r.Files = []string{path.Clean(in.To)}
	r.Meta = map[string]any{"from": path.Clean(in.From), "to": path.Clean(in.To)}
	return r, nil
}
