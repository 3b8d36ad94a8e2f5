package runs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
)

func (c runs) watch() *cobra.Command {
	var s conn.OfRun
	var how watched
	timeout := time.Duration(0)
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Watch a run to its end",
		Long: "Watch a run from its first event to its end, and print its result. The command fails if the run failed.\n" +
			"With -o json each event is one line, as it is stored.\n" +
			"With --deltas it shows replies while they are written: on a terminal, or as lines of type " + messages.TypeLive + ".\n" +
			"With --children it also shows the runs below it: each line names its run, with a › for each level.",
		Args: s.One(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("timeout") && timeout <= 0 {
				return render.Usagef("--timeout: must be more than 0")
			}
			if how.deltas && how.children {
				return render.Usagef("--children: cannot be combined with --deltas")
			}
			return c.WithRun(cmd, &s, args, func(client *dispatcher.Client, run messages.Ref) error {
				return within(cmd, timeout, client, run, func() error {
					if s.Output.JSON {
						return c.watchJSON(cmd, client, run, how)
					}
					return c.watchText(cmd, client, run, how)
				})
			})
		},
	}
	s.Register(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to watch, such as 90s (default: until the run ends)")
	cmd.Flags().BoolVar(&how.deltas, "deltas", false, "show replies while they are written")
	cmd.Flags().BoolVar(&how.children, "children", false, "also show all runs below it: its children, and theirs")
	return cmd
}

// watched is what a watch shows besides the events of its run.
type watched struct{ deltas, children bool }

func (c runs) watchText(cmd *cobra.Command, client *dispatcher.Client, run messages.Ref, how watched) error {
	options := c.Options
	options.Deltas, options.Tree = how.deltas, how.children
	options.Out = cmd.OutOrStdout()
	reporter := report.NewReporter(cmd.ErrOrStderr(), options)
	defer reporter.Close()
	if unknown(cmd, client, run) {
		reporter.Note(run.Run, notYet(run))
	}
	_, err := report.WatchAndReport(cmd.Context(), client, run, reporter)
	return err
}

func (c runs) watchJSON(cmd *cobra.Command, client *dispatcher.Client, run messages.Ref, how watched) error {
	if unknown(cmd, client, run) {
		if err := render.Write(cmd.ErrOrStderr(), notYet(run)+"\n"); err != nil {
			return err
		}
	}
	var printing sync.Mutex
	line := func(v any) error {
		printing.Lock()
		defer printing.Unlock()
		return c.WriteJSON(cmd, v)
	}
	if how.deltas {
		defer report.ShowDeltas(cmd.Context(), client, run, func(l messages.Live) {
			_ = line(&l) // the next event meets the same error
		})()
	}
	var result *messages.AgentResult
	watch := client.Watch
	if how.children {
		watch = client.Runs().WatchTree
	}
	for e, err := range watch(cmd.Context(), run) {
		if err != nil {
			return report.StoppedWatching(cmd.Context(), err, run)
		}
		if err := line(&e); err != nil {
			return err
		}
		if e.Name() == messages.EventRunFinished && e.Subject == run.Run {
			result = report.ResultOf(&e)
		}
	}
	if result == nil {
		return fmt.Errorf("run %s: its last event cannot be read: see `%s`", run.Run, render.Command("result", run))
	}
	return tell(cmd, result)
}

// within lets a command watch for a time; 0: forever. What it watches continues.
func within(cmd *cobra.Command, timeout time.Duration, client *dispatcher.Client, run messages.Ref, watch func() error) error {
	if timeout == 0 {
		return watch()
	}
	whole := cmd.Context()
	ctx, cancel := context.WithTimeout(whole, timeout)
	defer cancel()
	cmd.SetContext(ctx)
	err := watch()
	cmd.SetContext(whole)
	if err == nil || ctx.Err() == nil || whole.Err() != nil {
		return err
	}
	if unknown(cmd, client, run) {
		return render.Worded(fmt.Sprintf("run %s of tenant %s is not known within %s", run.Run, run.Tenant, timeout), err)
	}
	return render.Worded(fmt.Sprintf("run %s has not ended within %s and continues: see `%s`", run.Run, timeout, render.Command("status", run)), err)
}

// unknown reports whether there is no such run. A run may be watched before it is submitted, and its events may outlive its log, so
// this alone is no error; but a user who mistyped an id should be told.
func unknown(cmd *cobra.Command, client *dispatcher.Client, run messages.Ref) bool {
	_, err := client.Status(cmd.Context(), run)
	return errors.Is(err, dispatcher.ErrNotFound)
}

func notYet(run messages.Ref) string {
	return fmt.Sprintf("run %s of tenant %s is not known (yet): waiting for its first event", run.Run, run.Tenant)
}

// tell says on the error output how a run failed, and returns the error that stands for it.
func tell(cmd *cobra.Command, result *messages.AgentResult) error {
	err := render.Failed(result)
	if err == nil {
		return nil
	}
	if err := render.Write(cmd.ErrOrStderr(), err.Error()+"\n"); err != nil {
		return err
	}
	return err
}
