package runs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

func (c decisions) approvals() *cobra.Command {
	var s conn.Shared
	limit := 0
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List the calls that wait for an approval",
		Long:  "List the tool calls that wait for an approval, newest run first. With -o json each is a line.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.Check("_"); err != nil { // for the tenant
				return err
			}
			if limit < 1 || limit > control.MaxApprovals {
				return render.Usagef("--limit: must be 1 to %d", control.MaxApprovals)
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				list, err := client.Approvals().List(cmd.Context(), s.Tenant, limit)
				if err != nil {
					return render.Explain(err, messages.Ref{Tenant: s.Tenant, Run: "_"})
				}
				return c.writeApprovals(cmd, &s, list)
			})
		},
	}
	s.Register(cmd)
	cmd.Flags().IntVar(&limit, "limit", conn.DefaultListed, fmt.Sprintf("maximum number, up to %d", control.MaxApprovals))
	return cmd
}

func (c decisions) writeApprovals(cmd *cobra.Command, s *conn.Shared, list *control.ApprovalList) error {
	table := render.NewTable(cmd.OutOrStdout())
	for i := range list.Approvals {
		a := &list.Approvals[i]
		if s.Output.JSON {
			if err := c.WriteJSON(cmd, a); err != nil {
				return err
			}
			continue
		}
		if i == 0 {
			table.Row("RUN", "CALL", "AGENT", "AGE", "UNTIL", "WHAT")
		}
		until := "-"
		if a.Until != nil {
			until = render.At(*a.Until, c.Options.Now())
		}
		table.Row(a.ID, report.ShellWord(a.Call), a.Agent, render.Span(c.Options.Now().Sub(a.Since)), until,
			report.Describe(messages.ToolCall{Name: a.Tool, Arguments: a.Arguments}))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch {
	case list.More:
		return render.Write(cmd.ErrOrStderr(), "there are more: see them with --limit\n")
	case len(list.Approvals) == 0 && !s.Output.JSON:
		return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("no call of tenant %s waits for an approval\n", s.Tenant))
	default:
		return nil
	}
}

// said is what the flags of a decision say about who and why.
type said struct {
	conn.OfRun

	by, reason string
}

func (s *said) registerBy(cmd *cobra.Command) {
	s.Register(cmd)
	cmd.Flags().StringVar(&s.by, "by", "", "who decides; it is recorded (default: the user of this process)")
}

func (c decisions) decide(use, short, long string, deny bool) *cobra.Command {
	s := said{OfRun: conn.OfRun{Changes: true}}
	var arguments string
	cmd := &cobra.Command{
		Use: use + " RUN [CALL]", Short: short, Long: long,
		Args: s.Args(0, 1, "the id of a run and of its call that waits"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d := dispatcher.Decision{By: cmp.Or(s.by, c.Options.User), Reason: s.reason}
			if rest := s.Rest(args); len(rest) == 1 {
				d.Call = rest[0]
			}
			return c.WithRun(cmd, &s.OfRun, args, func(client *dispatcher.Client, run messages.Ref) error {
				if arguments != "" {
					given, err := argumentsOf(cmd, arguments)
					if err != nil {
						return err
					}
					d.Arguments = given
				}
				do, what := client.Approvals().Approve, "approved"
				if deny {
					do, what = client.Approvals().Deny, "denied"
				}
				status, err := do(cmd.Context(), run, d)
				return c.wasTold(cmd, &s.Shared, run, status, err, what)
			})
		},
	}
	s.registerBy(cmd)
	cmd.Flags().StringVar(&s.reason, "reason", "", "why; it is recorded, and the agent reads it after a denial")
	if !deny {
		cmd.Flags().StringVar(&arguments, "arguments", "", "make the call with these arguments: a JSON object, a file with one, or - for standard input")
	}
	return cmd
}

// argumentsOf reads the arguments of a call: an object, or the file or standard input that holds it.
func argumentsOf(cmd *cobra.Command, given string) (json.RawMessage, error) {
	data := []byte(strings.TrimSpace(given))
	if !bytes.HasPrefix(data, []byte("{")) {
		var err error
		if data, err = render.ReadFile(cmd, given, messages.MaxEdited); err != nil {
			return nil, err
		}
	}
	var object json.RawMessage
	err := strict.DecodeDepth("--arguments", strict.MaxDepth, data, &object)
	if err == nil {
		err = messages.CheckObject("--arguments", object, messages.MaxEdited)
	}
	if err != nil {
		return nil, render.Usagef("%v", err)
	}
	return object, nil
}

func (c decisions) approve() *cobra.Command {
	return c.decide("approve", "Approve a call that waits", "Approve a call that waits: `longshore approvals` lists them.\n"+
		"Without CALL it lets a run that asks for it exceed its budget.", false)
}

func (c decisions) deny() *cobra.Command {
	return c.decide("deny", "Deny a call that waits", "Refuse a call that waits for an approval. The agent is informed, or its run ends, depending on its definition.\n"+
		"Without CALL it ends a run that asks to exceed its budget.", true)
}

func (c decisions) answer() *cobra.Command {
	s := said{OfRun: conn.OfRun{Changes: true}}
	cmd := &cobra.Command{
		Use: "answer RUN TEXT", Short: "Answer the question of a waiting run",
		Args: s.Args(1, 1, "the id of a run and the answer in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.WithRun(cmd, &s.OfRun, args, func(client *dispatcher.Client, run messages.Ref) error {
				status, err := client.Approvals().Answer(cmd.Context(), run, control.AnswerRequest{Text: s.Rest(args)[0], By: cmp.Or(s.by, c.Options.User)})
				return c.wasTold(cmd, &s.Shared, run, status, err, "answered")
			})
		},
	}
	s.registerBy(cmd)
	return cmd
}

// wasTold says what came of a decision or an answer.
func (c decisions) wasTold(cmd *cobra.Command, s *conn.Shared, run messages.Ref, status *control.RunStatus, err error, what string) error {
	switch {
	case err != nil:
		return render.Explain(err, run)
	case s.Output.JSON:
		return c.WriteJSON(cmd, status)
	default:
		return render.Write(cmd.OutOrStdout(), fmt.Sprintf("%s: run %s continues: see `%s`\n", what, run.Run, render.Command("watch", run)))
	}
}
