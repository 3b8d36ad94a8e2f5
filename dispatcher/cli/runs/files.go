package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// files are the commands about the files of a run.
type files struct{ *conn.Caller }

// version is what the flags say about which files are meant.
type version struct {
	conn.OfRun

	step      int
	workspace string // a named one, in place of a run
}

func (v *version) register(cmd *cobra.Command, help string) {
	v.Register(cmd)
	cmd.Flags().IntVar(&v.step, "step", 0, help)
}

// registerWorkspace adds the flag that names a workspace in place of a run.
func (v *version) registerWorkspace(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.workspace, "workspace", "", "name of a named workspace, in place of the id of a run: the files that the next run there begins with")
}

// args wants the id of a run, unless --workspace is given, and so many further arguments.
func (v *version) args(further int, what, without string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case !cmd.Flags().Changed("workspace"):
			return v.Args(further, further, what)(cmd, args)
		case cmd.Flags().Changed("step") || cmd.Flags().Changed("last"):
			return render.Usagef("--workspace: takes no --step and no --last, for it has the files of now alone")
		case !strict.ValidToken(v.workspace):
			return render.Usagef("--workspace: the name of a workspace is 1 to 64 characters of A-Z a-z 0-9 _ -")
		case len(args) != further:
			return render.Usagef("--workspace stands for the id of a run: needs %s, got %d arguments", without, len(args))
		default:
			return nil
		}
	}
}

// at is the step, nil if none is named.
func (v *version) at(cmd *cobra.Command) (*int, error) {
	switch {
	case !cmd.Flags().Changed("step"):
		return nil, nil
	case v.step < 0:
		return nil, render.Usagef("--step: must be 0 or more")
	default:
		return &v.step, nil
	}
}

func (c files) files() *cobra.Command {
	cmd := &cobra.Command{
		Use: "files", Short: "List, get and compare the files of a run",
		Long: "Show the files of a run as they were after each step. Files are saved with the step that changed them.\n" +
			"With --workspace they are those of a named workspace.",
	}
	cmd.AddCommand(c.list(), c.get(), c.diff())
	return cmd
}

func (c files) list() *cobra.Command {
	var v version
	cmd := &cobra.Command{
		Use: "ls ID", Short: "List the files of a run",
		Long: "List the files of a run, by name. With -o json each file is one line.",
		Args: v.args(0, "the id of one run", "nothing more"),
		RunE: func(cmd *cobra.Command, args []string) error {
			step, err := v.at(cmd)
			switch {
			case err != nil:
				return err
			case v.workspace != "":
				return c.With(cmd.Context(), func(client *dispatcher.Client) error {
					list, err := client.Workspaces().Files(cmd.Context(), v.Tenant, v.workspace)
					if err != nil {
						return explainWorkspaceFile(err, &v, "workspaces ls")
					}
					return c.table(cmd, &v, list, "workspace "+v.workspace)
				})
			}
			return c.WithRun(cmd, &v.OfRun, args, func(client *dispatcher.Client, run messages.Ref) error {
				list, err := client.Files().List(cmd.Context(), run, dispatcher.FilesAt{Step: step})
				if err != nil {
					return render.Explain(err, run)
				}
				return c.table(cmd, &v, list, "run "+run.Run)
			})
		},
	}
	v.register(cmd, "the files as they were after this step; 0: before the first (default: the last)")
	v.registerWorkspace(cmd)
	return cmd
}

// table shows a list of files of a run or a workspace.
func (c files) table(cmd *cobra.Command, v *version, list *control.FileList, of string) error {
	switch {
	case v.Output.JSON:
		return conn.WriteLines(c.Caller, cmd, list.Files)
	case len(list.Files) == 0:
		return render.Write(cmd.ErrOrStderr(), of+" has no files there\n")
	}
	table := render.NewTable(cmd.OutOrStdout())
	table.Row("NAME", "SIZE", "HASH", "TYPE")
	for _, f := range list.Files {
		table.Row(f.Name, strconv.FormatInt(f.Size, 10), f.Hash[:min(shownHash, len(f.Hash))], f.Type)
	}
	return table.Flush()
}

// shownHash is how much of a hash a table shows.
const shownHash = 12

func (c files) get() *cobra.Command {
	var v version
	var out string
	var force bool
	cmd := &cobra.Command{
		Use: "get ID NAME", Short: "Get a file of a run",
		Long: "Write a file of a run to standard output, or to a file with --out. It is verified by its hash. Only text is\n" +
			"written to a terminal.",
		Example: "  longshore files get 01JD0000000000000000000000 report/summary.md --out summary.md",
		Args:    v.args(1, "the id of a run and the name of a file", "the name of a file without it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			step, err := v.at(cmd)
			switch {
			case err != nil:
				return err
			case cmd.Flags().Changed("out") && out == "":
				return render.Usagef("--out: is empty")
			case out == "" && (v.Output.JSON || force):
				return render.Usagef("-o json and --force: are only for --out")
			}
			take := func(read func(io.Writer) (*messages.SavedFile, error)) error {
				if out == "" {
					return c.show(cmd, read)
				}
				f, err := writeFile(out, force, read)
				switch {
				case err != nil:
					return render.OneLine(err)
				case v.Output.JSON:
					return c.WriteJSON(cmd, f)
				default:
					return render.Write(cmd.ErrOrStderr(), render.Visible(fmt.Sprintf("wrote %d bytes to %s", f.Size, out))+"\n")
				}
			}
			if v.workspace != "" {
				return c.With(cmd.Context(), func(client *dispatcher.Client) error {
					return take(func(w io.Writer) (*messages.SavedFile, error) {
						f, err := client.Workspaces().File(cmd.Context(), v.Tenant, v.workspace, args[0], w)
						return f, explainWorkspaceFile(err, &v, "files ls --workspace "+v.workspace)
					})
				})
			}
			return c.WithRun(cmd, &v.OfRun, args, func(client *dispatcher.Client, run messages.Ref) error {
				return take(func(w io.Writer) (*messages.SavedFile, error) {
					f, err := client.Files().Get(cmd.Context(), run, v.Rest(args)[0], dispatcher.FilesAt{Step: step}, w)
					return f, explainFile(err, run)
				})
			})
		},
	}
	v.register(cmd, "the file as it was after this step; 0: before the first (default: the last)")
	v.registerWorkspace(cmd)
	cmd.Flags().StringVar(&out, "out", "", "the file to write; it must not exist")
	cmd.Flags().BoolVar(&force, "force", false, "replace the file of --out if it exists")
	return cmd
}

func explainFile(err error, run messages.Ref) error {
	if errors.Is(err, dispatcher.ErrNoFile) {
		return render.Worded(render.Visible(fmt.Sprintf("%v: see `%s`", err, render.Command("files ls", run))), err)
	}
	return render.Explain(err, run)
}

// explainWorkspaceFile names the command that shows what there is.
func explainWorkspaceFile(err error, v *version, shows string) error {
	if errors.Is(err, dispatcher.ErrNoFile) {
		return render.Worded(render.Visible(fmt.Sprintf("%v: see `longshore %s`", err, shows)), err)
	}
	return render.Explain(err, messages.Ref{Tenant: v.Tenant})
}

// maxShown bounds what a terminal is shown of a file, and what is compared line by line, in bytes.
const maxShown = 1 << 20

// errTooLong ends the reading of a file that is not for a terminal.
var errTooLong = errors.New("too long")

// bounded keeps what is written to it, up to maxShown bytes.
type bounded struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxShown {
		return 0, errTooLong
	}
	return b.Buffer.Write(p)
}

// show writes a file to the output: byte for byte, or as text to a terminal.
func (c files) show(cmd *cobra.Command, read func(io.Writer) (*messages.SavedFile, error)) error {
	if c.Options.Raw {
		_, err := read(cmd.OutOrStdout())
		return err
	}
	var text bounded
	_, err := read(&text)
	switch {
	case errors.Is(err, errTooLong):
		return fmt.Errorf("the file is larger than %d bytes, which is too long for a terminal: name a file with --out", maxShown)
	case err != nil:
		return err
	case !isText(text.Bytes()):
		return errors.New("the file is not text: name a file with --out")
	default:
		return render.Write(cmd.OutOrStdout(), render.VisibleLines(text.String()))
	}
}

// isText reports whether a content can be shown and compared in lines.
func isText(data []byte) bool { return utf8.Valid(data) && !bytes.ContainsRune(data, 0) }

// writeFile writes a file, which appears once all of it has been read and verified.
func writeFile(name string, force bool, read func(io.Writer) (*messages.SavedFile, error)) (_ *messages.SavedFile, err error) {
	if _, err := os.Lstat(name); err == nil && !force {
		return nil, fmt.Errorf("%s exists: choose another name, or replace it with --force", name)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("write file: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".longshore-*")
	if err != nil {
		return nil, fmt.Errorf("write file: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	f, err := read(tmp)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return nil, err
	}
	if !force {
		if err = os.Link(tmp.Name(), name); err != nil { // which replaces nothing
			return nil, fmt.Errorf("write file: %w", err)
		}
		return f, os.Remove(tmp.Name())
	}
	if err = os.Rename(tmp.Name(), name); err != nil {
		return nil, fmt.Errorf("write file: %w", err)
	}
	return f, nil
}

// text is a file that can be compared in lines; false: it is too large or not text.
func text(ctx context.Context, client *dispatcher.Client, run messages.Ref, name, list string) (string, bool, error) {
	var b bounded
	_, err := client.Files().Get(ctx, run, name, dispatcher.FilesAt{Manifest: list}, &b)
	if errors.Is(err, errTooLong) {
		return "", false, nil
	}
	return b.String(), err == nil && isText(b.Bytes()), err
}
