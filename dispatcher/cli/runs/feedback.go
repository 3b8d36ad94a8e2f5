package runs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func (c runs) feedback() *cobra.Command {
	var s said
	var req control.FeedbackRequest
	score, labels := 0.0, []string(nil)
	cmd := &cobra.Command{
		Use: "feedback RUN", Short: "Store feedback on a run, or list it",
		Long: "Store feedback on a run with --score, --comment or --label, while it runs or after its end. Feedback does not change\n" +
			"the run. Without these flags the command lists the feedback, newest first; with -o json each item is one line.",
		Args: s.One(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("score") {
				req.Score = &score
			}
			for _, l := range labels {
				k, v, ok := strings.Cut(l, "=")
				if !ok || k == "" {
					return render.Usagef("--label: must be key=value")
				}
				if req.Labels == nil {
					req.Labels = map[string]string{}
				}
				req.Labels[k] = v
			}
			req.By = cmp.Or(s.by, c.Options.User)
			s.Changes = req.Score != nil || req.Comment != "" || len(req.Labels) > 0
			return c.WithRun(cmd, &s.OfRun, args, func(client *dispatcher.Client, run messages.Ref) error {
				if req.Score == nil && req.Comment == "" && len(req.Labels) == 0 {
					list, err := client.Runs().Feedback(cmd.Context(), run)
					if err != nil {
						return render.Explain(err, run)
					}
					return c.writeFeedback(cmd, &s.Shared, run, list)
				}
				f, err := client.Runs().AddFeedback(cmd.Context(), run, req)
				switch {
				case err != nil:
					return render.Explain(err, run)
				case s.Output.JSON:
					return c.WriteJSON(cmd, f)
				default:
					return render.Write(cmd.OutOrStdout(), "stored: see `"+render.Command("feedback", run)+"`\n")
				}
			})
		},
	}
	s.Register(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&score, "score", 0, "from -1 (bad) to 1 (good)")
	flags.StringVar(&req.Comment, "comment", "", "why")
	flags.StringArrayVar(&labels, "label", nil, "key=value; may be given more than once")
	flags.IntVar(&req.Step, "step", 0, "the step that it is about (default: the whole run)")
	flags.StringVar(&s.by, "by", "", "your name, which is recorded (default: the user of this process)")
	return cmd
}

func (c runs) writeFeedback(cmd *cobra.Command, s *conn.Shared, run messages.Ref, list *control.FeedbackList) error {
	table := render.NewTable(cmd.OutOrStdout())
	for i := range list.Feedback {
		f := &list.Feedback[i]
		if s.Output.JSON {
			if err := c.WriteJSON(cmd, f); err != nil {
				return err
			}
			continue
		}
		if i == 0 {
			table.Row("AGE", "SCORE", "STEP", "BY", "COMMENT")
		}
		score, step := "-", "-"
		if f.Score != nil {
			score = fmt.Sprintf("%.4g", *f.Score)
		}
		if f.Step > 0 {
			step = strconv.Itoa(f.Step)
		}
		table.Row(render.Span(c.Options.Now().Sub(f.At)), score, step, cmp.Or(f.By, "-"), f.Comment)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(list.Feedback) == 0 && !s.Output.JSON {
		return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("run %s has no feedback\n", run.Run))
	}
	return nil
}
