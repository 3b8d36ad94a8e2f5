package runs

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

func (c submissions) retry() *cobra.Command {
	s := conn.OfRun{Changes: true}
	var id, by string
	var force bool
	cmd := &cobra.Command{
		Use: "retry ID", SuggestFor: []string{"rerun", "again", "resubmit"},
		Short: "Submit the task of a run again, as a new run",
		Long: "Submit the task of a run that failed or was cancelled again, with the agent as it is now, and print the id of the new\n" +
			"run. It starts from the beginning: `longshore fork` keeps the steps that were done.",
		Args: s.One(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("id") && !strict.ValidToken(id) {
				return render.Usagef("--id: must be 1 to 64 characters of A-Z a-z 0-9 _ -")
			}
			return c.WithRun(cmd, &s, args, func(client *dispatcher.Client, run messages.Ref) error {
				task, err := c.taskOf(cmd, client, run, force)
				if err != nil {
					return err
				}
				task.ID, task.By = id, cmp.Or(by, c.Options.User)
				again := messages.Ref{Tenant: run.Tenant, Run: id}
				again.Run, err = client.Submit(cmd.Context(), *task)
				if err != nil {
					return render.Explain(err, again)
				}
				if s.Output.JSON {
					return c.WriteJSON(cmd, control.SubmitReply{ID: again.Run})
				}
				if err := render.Write(cmd.OutOrStdout(), again.Run+"\n"); err != nil {
					return err
				}
				return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("watch it with `%s`\n", render.Command("watch", again))+render.SeeIt(c.Options.Console, again))
			})
		},
	}
	s.Register(cmd)
	cmd.Flags().StringVar(&id, "id", "", "id of the new run; a new one by default")
	cmd.Flags().BoolVar(&force, "force", false, "even if the run completed")
	c.ByFlag(cmd, &by)
	return cmd
}

// taskOf is the task of a run that has ended, ready to be submitted again: what was bound to its time is left out.
func (c submissions) taskOf(cmd *cobra.Command, client *dispatcher.Client, run messages.Ref, force bool) (*messages.Task, error) {
	status, err := client.Status(cmd.Context(), run)
	switch {
	case err != nil:
		return nil, render.Explain(err, run)
	case !status.Status.Ended():
		return nil, fmt.Errorf("run %s has not ended: cancel it first with `%s`", run.Run, render.Command("cancel", run))
	case status.Status == messages.StatusCompleted && !force:
		return nil, fmt.Errorf("run %s completed: use --force to submit its task again anyway", run.Run)
	}
	task, err := client.Runs().Task(cmd.Context(), run)
	switch {
	case errors.Is(err, dispatcher.ErrNotBegun):
		return nil, fmt.Errorf("run %s left no task to submit again", run.Run)
	case err != nil:
		return nil, render.Explain(err, run)
	}
	task.NotBefore, task.Traceparent = nil, ""
	if task.Deadline != nil && task.Deadline.Before(c.Options.Now()) {
		task.Deadline = nil
		err = render.Write(cmd.ErrOrStderr(), "its deadline has passed: the new run has none\n")
	}
	return task, err
}
