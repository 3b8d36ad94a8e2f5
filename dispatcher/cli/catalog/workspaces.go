package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// workspaces are the commands about named workspaces.
type workspaces struct{ *conn.Caller }

func (c workspaces) workspaces() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workspaces",
		Short: "List, show or remove named workspaces",
		Long: "List, show or remove named workspaces. Tasks that name one work on the same files, one run at a time, on whichever worker\n" +
			"each of them is.",
	}
	cmd.AddCommand(c.list(), c.show(), c.remove())
	return cmd
}

func (c workspaces) list() *cobra.Command {
	var s conn.Shared
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the named workspaces by name", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				list, err := client.Workspaces().List(cmd.Context(), s.Tenant)
				switch {
				case err != nil:
					return render.Explain(err, messages.Ref{Tenant: s.Tenant})
				case len(list.Workspaces) == 0 && !s.Output.JSON:
					return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("no workspaces of tenant %s\n", s.Tenant))
				case list.More:
					if err := render.Write(cmd.ErrOrStderr(), "there are more than these\n"); err != nil {
						return err
					}
				}
				if s.Output.JSON {
					return conn.WriteLines(c.Caller, cmd, list.Workspaces)
				}
				return writeWorkspaces(cmd.OutOrStdout(), list.Workspaces, c.Options.Now())
			})
		},
	}
	s.Register(cmd)
	return cmd
}

func (c workspaces) show() *cobra.Command {
	var s conn.Shared
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show what a workspace has, and which runs have it and wait for it", Args: oneWorkspace,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				found, err := client.Workspaces().Get(cmd.Context(), s.Tenant, args[0])
				switch {
				case err != nil:
					return explainWorkspace(err, s.Tenant, args[0])
				case s.Output.JSON:
					return c.WriteJSON(cmd, found)
				default:
					return writeWorkspace(cmd.OutOrStdout(), found, c.Options.Now())
				}
			})
		},
	}
	s.Register(cmd)
	return cmd
}

func (c workspaces) remove() *cobra.Command {
	var s conn.Shared
	cmd := &cobra.Command{
		Use: "rm NAME", Aliases: []string{"delete"}, Short: "Remove the files of a workspace",
		Long: "Remove the files of a workspace: the next run in it begins without files. The runs that have worked in it keep theirs until\n" +
			"they are purged: see `longshore files`.",
		Args: oneWorkspace,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				was, err := client.Workspaces().Delete(cmd.Context(), s.Tenant, args[0])
				switch {
				case err != nil:
					return explainWorkspace(err, s.Tenant, args[0])
				case s.Output.JSON:
					return c.WriteJSON(cmd, was)
				default:
					return render.Write(cmd.OutOrStdout(), fmt.Sprintf("workspace %s has no files now; it had %d\n", render.Visible(args[0]), was.Files))
				}
			})
		},
	}
	s.Register(cmd)
	return cmd
}

// oneWorkspace wants the name of a workspace.
func oneWorkspace(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return render.Usagef("needs the name of one workspace, got %d arguments", len(args))
	}
	if !strict.ValidToken(args[0]) {
		return render.Usagef("the name of a workspace is 1 to 64 characters of A-Z a-z 0-9 _ -")
	}
	return nil
}

func explainWorkspace(err error, tenant, name string) error {
	switch {
	case errors.Is(err, dispatcher.ErrNoWorkspace):
		return render.Worded(render.Visible(fmt.Sprintf("workspace %s of tenant %s has no files: see `longshore workspaces ls`", name, tenant)), err)
	case errors.Is(err, dispatcher.ErrWorkspaceBusy):
		return render.Worded(render.Visible(fmt.Sprintf("a run has workspace %s: see `longshore workspaces show %s`, and wait for its end or cancel it", name, name)), err)
	default:
		return render.Explain(err, messages.Ref{Tenant: tenant})
	}
}

func writeWorkspaces(w io.Writer, list []control.WorkspaceStatus, now time.Time) error {
	table := render.NewTable(w)
	table.Row("NAME", "FILES", "BYTES", "BY RUN", "UPDATED", "HELD BY")
	for i := range list {
		s := &list[i]
		table.Row(s.Name, strconv.Itoa(s.Files), strconv.FormatInt(s.Bytes, 10), cmp.Or(s.Run, "-"), updated(s, now), cmp.Or(s.Holder, "-"))
	}
	return table.Flush()
}

func updated(s *control.WorkspaceStatus, now time.Time) string {
	if s.Updated.IsZero() {
		return "-"
	}
	return render.Span(now.Sub(s.Updated)) + " ago"
}

func writeWorkspace(w io.Writer, s *control.WorkspaceStatus, now time.Time) error {
	table := render.NewTable(w)
	table.Row("files", fmt.Sprintf("%d, %d bytes", s.Files, s.Bytes))
	if s.Run != "" {
		table.Row("changed by", fmt.Sprintf("%s in step %d, %s", s.Run, s.Step, updated(s, now)))
	}
	if s.Holder != "" {
		table.Row("held by", s.Holder)
	}
	for _, id := range s.Waiting {
		table.Row("waiting", id)
	}
	return table.Flush()
}
