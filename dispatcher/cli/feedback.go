package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

func (c *commands) feedback() *cobra.Command {
	var s said
	var req messages.FeedbackRequest
	score, labels := 0.0, []string(nil)
	cmd := &cobra.Command{
		Use: "feedback RUN", Short: "Say what you think of a run, or list what others do",
		Long: "Store what you think of a run with --score, --comment or --label, while it runs or after its end. It changes nothing about\n" +
			"the run. Without any of them it lists what is stored, newest first; with -o json each is a line.",
		Args: s.one(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("score") {
				req.Score = &score
			}
			for _, l := range labels {
				k, v, ok := strings.Cut(l, "=")
				if !ok || k == "" {
					return usagef("--label: must be key=value")
				}
				if req.Labels == nil {
					req.Labels = map[string]string{}
				}
				req.Labels[k] = v
			}
			req.By = cmp.Or(s.by, c.options.User)
			s.changes = req.Score != nil || req.Comment != "" || len(req.Labels) > 0
			return c.withRun(cmd, &s.ofRun, args, func(client *dispatcher.Client, run messages.Ref) error {
				if req.Score == nil && req.Comment == "" && len(req.Labels) == 0 {
					list, err := client.FeedbackOn(cmd.Context(), run)
					if err != nil {
						return explain(err, run)
					}
					return c.writeFeedback(cmd, &s.shared, run, list)
				}
				f, err := client.Feedback(cmd.Context(), run, req)
				switch {
				case err != nil:
					return explain(err, run)
				case s.output.json:
					return c.writeJSON(cmd, f)
				default:
					return write(cmd.OutOrStdout(), "stored: see `"+command("feedback", run)+"`\n")
				}
			})
		},
	}
	s.register(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&score, "score", 0, "from -1 (bad) to 1 (good)")
	flags.StringVar(&req.Comment, "comment", "", "why")
	flags.StringArrayVar(&labels, "label", nil, "key=value; may be given more than once")
	flags.IntVar(&req.Step, "step", 0, "the step that it is about (default: the whole run)")
	flags.StringVar(&s.by, "by", "", "who says it; it is recorded (default: the user of this process)")
	return cmd
}

func (c *commands) writeFeedback(cmd *cobra.Command, s *shared, run messages.Ref, list *messages.FeedbackList) error {
	table := newTable(cmd.OutOrStdout())
	for i := range list.Feedback {
		f := &list.Feedback[i]
		if s.output.json {
			if err := c.writeJSON(cmd, f); err != nil {
				return err
			}
			continue
		}
		if i == 0 {
			writeRow(table, "AGE", "SCORE", "STEP", "BY", "COMMENT")
		}
		score, step := "-", "-"
		if f.Score != nil {
			score = fmt.Sprintf("%.4g", *f.Score)
		}
		if f.Step > 0 {
			step = strconv.Itoa(f.Step)
		}
		writeRow(table, span(c.options.Now().Sub(f.At)), score, step, cmp.Or(f.By, "-"), f.Comment)
	}
	if err := flush(table); err != nil {
		return err
	}
	if len(list.Feedback) == 0 && !s.output.json {
		return write(cmd.ErrOrStderr(), fmt.Sprintf("run %s has no feedback\n", run.Run))
	}
	return nil
}
