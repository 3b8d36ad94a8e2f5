package catalog

import (
	"cmp"
	"context"
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
)

// workspaces are the commands about named workspaces.
func workspaces(caller *conn.Caller) *cobra.Command {
	n := named[control.WorkspaceStatus]{
		Caller: caller, one: "workspace", many: "workspaces", explain: explainWorkspace, rows: writeWorkspaces, details: writeWorkspace,
		list: func(ctx context.Context, c *dispatcher.Client, tenant string) ([]control.WorkspaceStatus, bool, error) {
			list, err := c.Workspaces().List(ctx, tenant)
			if err != nil {
				return nil, false, err
			}
			return list.Workspaces, list.More, nil
		},
		get: func(ctx context.Context, c *dispatcher.Client, tenant, name string) (*control.WorkspaceStatus, error) {
			return c.Workspaces().Get(ctx, tenant, name)
		},
		remove: func(ctx context.Context, c *dispatcher.Client, tenant, name string) (*control.WorkspaceStatus, error) {
			return c.Workspaces().Delete(ctx, tenant, name)
		},
		removed: func(name string, was *control.WorkspaceStatus) string {
			return fmt.Sprintf("workspace %s has no files now; it had %d\n", name, was.Files)
		},
	}
	cmd := &cobra.Command{
		Use:   "workspaces",
		Short: "List, show or remove named workspaces",
		Long: "List, show or remove named workspaces. Tasks that name the same workspace work on the same files, one run at a time, on any\n" +
			"worker.",
	}
	cmd.AddCommand(
		n.listed(&cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List the named workspaces by name"}),
		n.shown(&cobra.Command{Use: "show NAME", Short: "Show the files of a workspace, the run that holds it, and the runs that wait for it"}),
		n.deleted(&cobra.Command{
			Use: "rm NAME", Aliases: []string{"delete"}, Short: "Remove the files of a workspace",
			Long: "Remove the files of a workspace: the next run in it begins without files. The runs that have worked in it keep theirs until\n" +
				"they are purged: see `longshore files`.",
		}),
	)
	return cmd
}

func explainWorkspace(err error, tenant, name string) error {
	switch {
	case errors.Is(err, dispatcher.ErrNoWorkspace):
		return render.Worded(render.Visible(fmt.Sprintf("workspace %s of tenant %s has no files: see `longshore workspaces ls`", name, tenant)), err)
	case errors.Is(err, dispatcher.ErrWorkspaceBusy):
		return render.Worded(render.Visible(fmt.Sprintf("a run holds workspace %s: see `longshore workspaces show %s`, and wait until it ends, or cancel it", name, name)), err)
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
