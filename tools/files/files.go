// Package files is the family of tools with which a model lists, reads and writes the text files of its workspace.
package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
)

// maxListed is how many paths a model is told; more would drown its task.
const maxListed = 1000

// maxPiece is the size of a file's part that a model is given at once, in bytes: with the note it stays below the limit of a result.
const maxPiece = 65_000

// errNoWorkspace means that the worker was wired without workspaces.
var errNoWorkspace = errors.New("the run has no workspace")

type (
	listArgs struct{}
	readArgs struct {
		FilePath string `json:"filePath"         jsonschema:"Path relative to the workspace, such as notes/a.txt"`
		Offset   int    `json:"offset,omitempty" jsonschema:"Byte to begin at; 0 by default"`
		Limit    int    `json:"limit,omitempty"  jsonschema:"Bytes to return at most; 65000 by default and at most"`
	}
	writeArgs struct {
		FilePath string `json:"filePath" jsonschema:"Path relative to the workspace, such as notes/a.txt"`
		Content  string `json:"content"  jsonschema:"The whole new content of the file"`
	}
)

// Tools are list_files, read_file and write_file.
func Tools() ([]tools.Tool, error) {
	list, err := tools.Func(messages.ToolSpec{
		Name: "list_files", Effect: messages.EffectRead, SafeByDefault: true,
		Description: "Lists the files in the workspace and all its folders: one relative path per line. " +
			"A path with unusual characters is written as a quoted string.",
	}, listFiles)
	if err != nil {
		return nil, err
	}
	read, err := tools.FuncOn(messages.ToolSpec{
		Name: "read_file", Effect: messages.EffectRead, SafeByDefault: true,
		Description: "Returns the content of a UTF-8 text file in the workspace. A long file comes in pieces: " +
			"the end of a piece says with which offset to read on.",
	}, func(in readArgs) string { return resource(in.FilePath) }, readFile)
	if err != nil {
		return nil, err
	}
	write, err := tools.FuncOn(messages.ToolSpec{
		Name: "write_file", Effect: messages.EffectIdempotent, SafeByDefault: true,
		Description: "Writes a UTF-8 text file in the workspace. It replaces the whole file; missing folders are made.",
	}, func(in writeArgs) string { return resource(in.FilePath) }, writeFile)
	if err != nil {
		return nil, err
	}
	return []tools.Tool{list, read, write}, nil
}

func listFiles(ctx context.Context, c tools.Call, _ listArgs) (tools.Result, error) {
	if c.Workspace == nil {
		return tools.Result{}, errNoWorkspace
	}
	names, err := c.Workspace.List(ctx)
	more := errors.Is(err, sandbox.ErrMore)
	if err != nil && !more {
		return tools.Result{}, err
	}
	if len(names) > maxListed {
		names, more = names[:maxListed], true
	}
	for i, name := range names {
		names[i] = line(name)
	}
	text := strings.Join(names, "\n")
	if more {
		text += fmt.Sprintf("\n(There are more files; these are %d of them.)", len(names))
	}
	return tools.Text(text), nil
}

// line keeps a name on one line, and not to be taken for another name.
func line(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == '\\' }
	if !utf8.ValidString(name) || strings.ContainsFunc(name, odd) {
		return strconv.Quote(name)
	}
	return name
}

func readFile(_ context.Context, c tools.Call, in readArgs) (tools.Result, error) {
	if c.Workspace == nil {
		return tools.Result{}, errNoWorkspace
	}
	data, err := c.Workspace.Read(in.FilePath)
	if err != nil {
		return failure(err)
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return tools.Failure(fmt.Sprintf("%s: is not UTF-8 text but %d bytes of something else", in.FilePath, len(data))), nil
	}
	r := piece(data, in)
	if !r.IsError {
		r.Meta = map[string]any{"bytes": len(data)}
	}
	return r, nil
}

// piece is the part of a text that was asked for, cut between characters.
func piece(data []byte, in readArgs) tools.Result {
	limit := in.Limit
	switch {
	case in.Offset < 0 || in.Offset > len(data):
		return tools.Failure(fmt.Sprintf("offset: the file has %d bytes", len(data)))
	case in.Offset < len(data) && !utf8.RuneStart(data[in.Offset]):
		return tools.Failure("offset: is inside a character")
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

func writeFile(_ context.Context, c tools.Call, in writeArgs) (tools.Result, error) {
	if c.Workspace == nil {
		return tools.Result{}, errNoWorkspace
	}
	if err := c.Workspace.Write(in.FilePath, []byte(in.Content)); err != nil {
		return failure(err)
	}
	r := tools.Text(fmt.Sprintf("Wrote %d bytes to %s", len(in.Content), in.FilePath))
	r.Files = []string{path.Clean(in.FilePath)}
	r.Meta = map[string]any{"bytes": len(in.Content)}
	return r, nil
}

// failure tells the model what it can correct; the rest is the platform's.
func failure(err error) (tools.Result, error) {
	if pe, ok := errors.AsType[*sandbox.PathError](err); ok {
		return tools.Failure(pe.Error()), nil
	}
	return tools.Result{}, err
}

// resource is the key of a file: see tools.Resourcer. Names that some file systems take for the same have the same.
func resource(file string) string {
	return "workspace/" + strings.ToLower(path.Clean("/" + file)[1:])
}
