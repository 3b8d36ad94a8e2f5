package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

func (c *commands) approvals() *cobra.Command {
	var s shared
	limit := 0
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List the calls that wait for an approval",
		Long:  "List the tool calls that wait for an approval, newest run first. With -o json each is a line.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check("_"); err != nil { // for the tenant
				return err
			}
			if limit < 1 || limit > messages.MaxApprovals {
				return usagef("--limit: must be 1 to %d", messages.MaxApprovals)
			}
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				list, err := client.Approvals(cmd.Context(), s.tenant, limit)
				if err != nil {
					return explain(err, messages.Ref{Tenant: s.tenant, Run: "_"})
				}
				return c.writeApprovals(cmd, &s, list)
			})
		},
	}
	s.register(cmd)
	cmd.Flags().IntVar(&limit, "limit", defaultListed, fmt.Sprintf("at most so many, up to %d", messages.MaxApprovals))
	return cmd
}

func (c *commands) writeApprovals(cmd *cobra.Command, s *shared, list *messages.ApprovalList) error {
	table := newTable(cmd.OutOrStdout())
	for i := range list.Approvals {
		a := &list.Approvals[i]
		if s.output.json {
			if err := c.writeJSON(cmd, a); err != nil {
				return err
			}
			continue
		}
		if i == 0 {
			writeRow(table, "RUN", "CALL", "AGENT", "AGE", "UNTIL", "WHAT")
		}
		until := "-"
		if a.Until != nil {
			until = a.Until.UTC().Format(time.RFC3339)
		}
		writeRow(table, a.ID, shellWord(a.Call), a.Agent, span(c.options.Now().Sub(a.Since)), until,
			describe(messages.ToolCall{Name: a.Tool, Arguments: a.Arguments}))
	}
	if err := flush(table); err != nil {
		return err
	}
	switch {
	case list.More:
		return write(cmd.ErrOrStderr(), "there are more: see them with --limit\n")
	case len(list.Approvals) == 0 && !s.output.json:
		return write(cmd.ErrOrStderr(), fmt.Sprintf("nothing of tenant %s waits for an approval\n", s.tenant))
	default:
		return nil
	}
}

// said is what the flags of a decision say about who and why.
type said struct {
	ofRun

	by, reason string
}

func (s *said) registerBy(cmd *cobra.Command) {
	s.register(cmd)
	cmd.Flags().StringVar(&s.by, "by", "", "who decides; it is recorded (default: the user of this process)")
}

func (c *commands) decide(use, short, long string, deny bool) *cobra.Command {
	s := said{ofRun: ofRun{changes: true}}
	cmd := &cobra.Command{
		Use: use + " RUN [CALL]", Short: short, Long: long,
		Args: s.args(0, 1, "the id of a run and of its call that waits"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d := dispatcher.Decision{By: cmp.Or(s.by, c.options.User), Reason: s.reason}
			if rest := s.rest(args); len(rest) == 1 {
				d.Call = rest[0]
			}
			return c.withRun(cmd, &s.ofRun, args, func(client *dispatcher.Client, run messages.Ref) error {
				do, what := client.Approve, "approved"
				if deny {
					do, what = client.Deny, "denied"
				}
				status, err := do(cmd.Context(), run, d)
				return c.wasTold(cmd, &s.shared, run, status, err, what)
			})
		},
	}
	s.registerBy(cmd)
	cmd.Flags().StringVar(&s.reason, "reason", "", "why; it is recorded, and a denial tells it to the agent")
	return cmd
}

func (c *commands) approve() *cobra.Command {
	return c.decide("approve", "Approve a call that waits", "Let a call be made that waits for an approval: `longshore approvals` lists them.\n"+
		"Without CALL it lets a run go beyond its budget that asks whether it may.", false)
}

func (c *commands) deny() *cobra.Command {
	return c.decide("deny", "Deny a call that waits", "Refuse a call that waits for an approval. The agent is told, or its run ends, as its definition says.\n"+
		"Without CALL it ends a run that asks whether it may go beyond its budget.", true)
}

func (c *commands) answer() *cobra.Command {
	s := said{ofRun: ofRun{changes: true}}
	cmd := &cobra.Command{
		Use: "answer RUN TEXT", Short: "Answer the question that a run waits with",
		Args: s.args(1, 1, "the id of a run and the answer in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withRun(cmd, &s.ofRun, args, func(client *dispatcher.Client, run messages.Ref) error {
				status, err := client.Answer(cmd.Context(), run, messages.AnswerRequest{Text: s.rest(args)[0], By: cmp.Or(s.by, c.options.User)})
				return c.wasTold(cmd, &s.shared, run, status, err, "answered")
			})
		},
	}
	s.registerBy(cmd)
	return cmd
}

// wasTold says what came of a decision or an answer.
func (c *commands) wasTold(cmd *cobra.Command, s *shared, run messages.Ref, status *messages.RunStatus, err error, what string) error {
	switch {
	case err != nil:
		return explain(err, run)
	case s.output.json:
		return c.writeJSON(cmd, status)
	default:
		return write(cmd.OutOrStdout(), fmt.Sprintf("%s: run %s goes on: see `%s`\n", what, run.Run, command("watch", run)))
	}
}

// shellWord is a word that a shell takes as it is.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/", r)
	}
	if s != "" && !strings.HasPrefix(s, "-") && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
