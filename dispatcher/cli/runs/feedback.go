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
	var step, note string
	score, labels := 0.0, []string(nil)
	cmd := &cobra.Command{
		Use: "feedback RUN [up|down]", Short: "Store feedback on a run, or list it",
		Long: "Store feedback on a run, or with --step on one of its steps: up or down, --score, --comment or --label, while it runs or after\n" +
			"its end. up is a score of 1, down of -1. Feedback does not change the run. Without any of these the command lists the\n" +
			"feedback, newest first; with -o json each item is one line.",
		Example: "  longshore feedback 01KDZ6XV --step 2 down --note \"It read the wrong file.\"",
		Args:    s.Args(0, 1, "the id of one run, and up or down"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("score") {
				req.Score = &score
			}
			if err := rated(cmd, &req, s.Rest(args), step, note); err != nil {
				return err
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
	flags.StringVar(&note, "note", "", "the same as --comment")
	flags.StringArrayVar(&labels, "label", nil, "key=value; may be given more than once")
	flags.StringVar(&step, "step", "", "the step that it is about: its number, or its id in the plan of the run (default: the whole run)")
	flags.StringVar(&s.by, "by", "", "your name, which is recorded (default: the user of this process)")
	return cmd
}

// rated takes up what up or down, --note and --step say.
func rated(cmd *cobra.Command, req *control.FeedbackRequest, rest []string, step, note string) error {
	if len(rest) > 0 {
		votes := map[string]float64{"up": 1, "down": -1}
		vote, ok := votes[rest[0]]
		switch {
		case !ok:
			return render.Usagef("needs up or down after the run, not %q", rest[0])
		case req.Score != nil:
			return render.Usagef("--score: %s is a score already: give one of them", rest[0])
		}
		req.Score = &vote
	}
	if note != "" {
		if req.Comment != "" {
			return render.Usagef("--note: is the same as --comment: give one of them")
		}
		req.Comment = note
	}
	if !cmd.Flags().Changed("step") {
		return nil
	}
	n, err := strconv.Atoi(step)
	switch {
	case err != nil:
		req.StepID = step
	case n < 1:
		return render.Usagef("--step: must be the number of a step, from 1, or its id in the plan, not %q", step)
	default:
		req.Step = n
	}
	if req.Score == nil && req.Comment == "" {
		return render.Usagef("--step: say what you think of it: up, down, --score or --note")
	}
	return nil
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
		} else if f.StepID != "" {
			step = f.StepID
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
