package files

import (
	"context"
	"fmt"
	"path"

	"github.com/longshore-run/longshore/tools"
)

type writeArgs struct {
	FilePath string `json:"filePath" jsonschema:"Path relative to the workspace, such as notes/a.txt"`
	Content  string `json:"content"  jsonschema:"The whole new content of the file"`
}

func writeFile(_ context.Context, c tools.Call, in writeArgs) (tools.Result, error) {
	if err := c.Workspace.Write(in.FilePath, []byte(in.Content)); err != nil {
		return failure(err)
	}
	r := tools.Text(fmt.Sprintf("Wrote %d bytes to %s", len(in.Content), in.FilePath))
	r.Files = []string{path.Clean(in.FilePath)}
	r.Meta = map[string]any{"bytes": len(in.Content)}
	return r, nil
}
