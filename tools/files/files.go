// Package files is the family of tools with which a model works on the text files of its run's workspace: it lists, reads, searches,
// writes, edits, moves and deletes them. No tool here leaves the workspace, follows a link, changes permissions, runs
// a file, or deletes a folder with what is in it. They are safe by default: what they reach is the run's alone.
package files

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
)

// described holds the description of each tool, <tool>.md.
//
//go:embed *.md
var described embed.FS

// errNoWorkspace means that the worker was wired without workspaces.
var errNoWorkspace = errors.New("the run has no workspace")

// whole is the resource of calls that are about all files: see tools.Resourcer.
const whole = "workspace"

// Tools are list_files, read_file, write_file, edit_file, search_files, move_file, delete_file, make_dir, read_files and
// write_files.
func Tools() ([]tools.Tool, error) {
	rows := []func() (tools.Tool, error){
		row("list_files", messages.EffectRead, func(listArgs) string { return whole }, listFiles),
		row("read_file", messages.EffectRead, func(in readArgs) string { return resource(in.FilePath) }, readFile),
		row("write_file", messages.EffectIdempotent, func(in writeArgs) string { return resource(in.FilePath) }, writeFile),
		row("edit_file", messages.EffectOnce, nil, editFile),
		row("search_files", messages.EffectRead, func(searchArgs) string { return whole }, searchFiles),
		row("move_file", messages.EffectOnce, nil, moveFile),
		row("delete_file", messages.EffectOnce, nil, deleteFile),
		row("make_dir", messages.EffectIdempotent, func(in makeArgs) string { return resource(in.FolderPath) }, makeDir),
		row("read_files", messages.EffectRead, func(in readManyArgs) string { return resourceOf(in.FilePaths) }, readFiles),
		row("write_files", messages.EffectIdempotent, func(in writeManyArgs) string { return resourceOf(in.paths()) }, writeFiles),
	}
	all := make([]tools.Tool, len(rows))
	for i, open := range rows {
		var err error
		if all[i], err = open(); err != nil {
			return nil, err
		}
		if all[i].Spec().Name == "edit_file" {
			all[i] = edit{all[i]}
		}
	}
	return all, nil
}

// row makes a tool of a function that needs a workspace.
func row[In any](name string, effect messages.Effect, key func(In) string, f func(context.Context, tools.Call, In) (tools.Result, error)) func() (tools.Tool, error) {
	return func() (tools.Tool, error) {
		text, err := described.ReadFile(name + ".md")
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", name, err)
		}
		spec := messages.ToolSpec{Name: name, Effect: effect, SafeByDefault: true, Description: strings.TrimSpace(string(text))}
		return tools.FuncOn(spec, key, func(ctx context.Context, c tools.Call, in In) (tools.Result, error) {
			if c.Workspace == nil {
				return tools.Result{}, errNoWorkspace
			}
			return f(ctx, c, in)
		})
	}
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
	return whole + "/" + strings.ToLower(path.Clean("/" + file)[1:])
}

// resourceOf is the key of many files: what all of theirs are below.
func resourceOf(files []string) string {
	if len(files) == 0 {
		return whole
	}
	common := strings.Split(resource(files[0]), "/")
	for _, f := range files[1:] {
		parts := strings.Split(resource(f), "/")
		n := 0
		for n < len(parts) && n < len(common) && parts[n] == common[n] {
			n++
		}
		common = common[:n]
	}
	return strings.Join(common, "/")
}
