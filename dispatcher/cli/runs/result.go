package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// question is what the flags of result ask for.
type question struct {
	conn.OfRun
	wait       bool
	timeout    time.Duration
	transcript bool
	form       string
}

func (c runs) result() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:   "result ID",
		Short: "Print the result of a run",
		Long: "Print the result of a run that has ended. The command fails if the run failed. With -o json it prints the whole AgentResult. " +
			"With --transcript it prints the whole conversation: the instructions, the task, replies, tool calls and their results.",
		Args: q.One(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.check(cmd); err != nil {
				return err
			}
			return c.WithRun(cmd, &q.OfRun, args, func(client *dispatcher.Client, run messages.Ref) error {
				result, err := q.fetch(cmd.Context(), client, run)
				if err != nil {
					return err
				}
				if q.form != "" {
					return c.showTaskResult(cmd, client, run, result)
				}
				if q.transcript {
					return c.showTranscript(cmd, client, run, q.Output)
				}
				return c.showResult(cmd, result, q.Output)
			})
		},
	}
	q.Register(cmd)
	cmd.Flags().BoolVar(&q.wait, "wait", false, "wait until the run has ended")
	cmd.Flags().DurationVar(&q.timeout, "timeout", 0, "how long to wait, such as 90s (default: until the run ends)")
	cmd.Flags().BoolVar(&q.transcript, "transcript", false, "print the whole conversation of the run")
	cmd.Flags().StringVar(&q.form, "format", "", "task-result: status, outputs, summary and log entries, as JSON")
	return cmd
}

func (q *question) check(cmd *cobra.Command) error {
	switch {
	case q.form != "" && q.form != control.FormatTaskResult:
		return render.Usagef("--format: must be %s", control.FormatTaskResult)
	case q.form != "" && q.transcript:
		return render.Usagef("--format: cannot be combined with --transcript")
	case !cmd.Flags().Changed("timeout"):
		return nil
	case !q.wait:
		return render.Usagef("--timeout: is only for --wait")
	case q.timeout <= 0:
		return render.Usagef("--timeout: must be more than 0")
	default:
		return nil
	}
}

func (q *question) fetch(ctx context.Context, client *dispatcher.Client, run messages.Ref) (*messages.AgentResult, error) {
	result, err := client.Result(ctx, run) // also finds out at once that there is no such run
	if err != nil && ctx.Err() != nil {
		return nil, report.StoppedWatching(ctx, err, run)
	}
	if !q.wait || !errors.Is(err, dispatcher.ErrNotEnded) {
		return result, render.Explain(err, run)
	}
	waiting := ctx
	if q.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, q.timeout)
		defer cancel()
	}
	result, err = client.Wait(waiting, run)
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return nil, report.StoppedWatching(ctx, err, run)
	case waiting.Err() != nil:
		return nil, render.Worded(fmt.Sprintf("run %s has not ended within %s and continues: see `%s`", run.Run, q.timeout, render.Command("status", run)), err)
	default:
		return nil, render.Explain(err, run)
	}
}

func (c runs) showTaskResult(cmd *cobra.Command, client *dispatcher.Client, run messages.Ref, result *messages.AgentResult) error {
	short, err := client.Runs().TaskResult(cmd.Context(), run)
	if err != nil {
		return render.Explain(err, run)
	}
	if err := c.WriteJSON(cmd, short); err != nil {
		return err
	}
	return tell(cmd, result)
}

func (c runs) showResult(cmd *cobra.Command, result *messages.AgentResult, output render.Format) error {
	var err error
	if output.JSON {
		err = c.WriteJSON(cmd, result)
	} else {
		err = render.Write(cmd.OutOrStdout(), report.ResultText(result, c.Options.Raw))
	}
	if err != nil {
		return err
	}
	return tell(cmd, result)
}
