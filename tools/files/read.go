package files

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/longshore-run/longshore/tools"
)

// maxPiece is the size of a part of a file that a model is given at once, in bytes: with the note it stays below the limit of a result.
const maxPiece = 65_000

type readArgs struct {
	FilePath string `json:"filePath"         jsonschema:"Path relative to the workspace, such as notes/a.txt"`
	Offset   int    `json:"offset,omitempty" jsonschema:"Byte to start at; 0 by default"`
	Limit    int    `json:"limit,omitempty"  jsonschema:"Bytes to return at most; 65000 by default and at most"`
}

func readFile(_ context.Context, c tools.Call, in readArgs) (tools.Result, error) {
	data, err := c.Workspace.Read(in.FilePath)
	if err != nil {
		return failure(err)
	}
	if !isText(data) {
		return tools.Failure(notText(in.FilePath, data)), nil
	}
	r := piece(data, in)
	if !r.IsError {
		r.Meta = map[string]any{"bytes": len(data)}
	}
	return r, nil
}

func isText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

func notText(name string, data []byte) string {
	return fmt.Sprintf("%s: is not UTF-8 text but %d bytes of something else", name, len(data))
}

// piece is the part of a text that was asked for, cut between characters.
func piece(data []byte, in readArgs) tools.Result {
	limit := in.Limit
	switch {
	case in.Offset < 0 || in.Offset > len(data):
		return tools.Failure(fmt.Sprintf("offset: must be 0 to %d, the size of the file", len(data)))
	case in.Offset < len(data) && !utf8.RuneStart(data[in.Offset]):
		return tools.Failure("offset: is in the middle of a character")
	case limit < 0 || limit > maxPiece:
		return tools.Failure(fmt.Sprintf("limit: must be from 1 to %d", maxPiece))
	case limit == 0:
		limit = maxPiece
	}
	rest := data[in.Offset:]
	if len(rest) <= limit {
		return tools.Text(string(rest))
	}
	for limit > 0 && !utf8.RuneStart(rest[limit]) {
		limit--
	}
	if limit == 0 { // a character is returned whole
		_, limit = utf8.DecodeRune(rest)
	}
	return tools.Text(fmt.Sprintf("%s\n(The file has %d bytes; read on with offset %d.)", rest[:limit], len(data), in.Offset+limit))
}
