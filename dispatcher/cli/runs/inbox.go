package runs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// letter is something that waits for a person.
type letter struct {
	Kind     string                   `json:"kind"` // approval, answer or budget
	Tenant   string                   `json:"tenant"`
	ID       string                   `json:"id"` // of the run
	Agent    string                   `json:"agent,omitempty"`
	Since    time.Time                `json:"since,omitzero"`
	Until    *time.Time               `json:"until,omitempty"`
	Text     string                   `json:"text"`               // what is asked, for people
	Approval *control.WaitingApproval `json:"approval,omitempty"` // of an approval

	why *control.Why // that has Text; nil: it is of an approval
}

// decisions are the commands that decide for runs.
type decisions struct{ *conn.Caller }

func (c decisions) inbox() *cobra.Command {
	var s conn.Shared
	limit := 0
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List what is waiting for a person: approvals, questions, budgets",
		Long: "List the runs that wait until a person approves a call, answers a question or grants more budget, the longest wait\n" +
			"first, with the command that decides each. With -o json each is one line.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.Check("_"); err != nil { // for the tenant
				return err
			}
			if limit < 1 || limit > control.MaxApprovals {
				return render.Usagef("--limit: must be 1 to %d", control.MaxApprovals)
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				letters, more, lag, err := letters(cmd, client, s.Tenant, limit)
				if err != nil {
					return render.Explain(err, messages.Ref{Tenant: s.Tenant, Run: messages.NoRun})
				}
				if err := c.writeInbox(cmd, &s, letters, more); err != nil {
					return err
				}
				return render.Write(cmd.ErrOrStderr(), behindNote(lag, c.Options.Now()))
			})
		},
	}
	s.Register(cmd)
	cmd.Flags().IntVar(&limit, "limit", conn.DefaultListed, fmt.Sprintf("maximum number of each kind, up to %d", control.MaxApprovals))
	return cmd
}

// letters are what waits for a person; more says that there is more of it, lag what the index does not know yet.
func letters(cmd *cobra.Command, client *dispatcher.Client, tenant string, limit int) (out []letter, more bool, lag control.IndexLag, err error) {
	approvals, err := client.Approvals().List(cmd.Context(), tenant, limit)
	if err != nil {
		return nil, false, lag, err
	}
	for i := range approvals.Approvals {
		a := &approvals.Approvals[i]
		out = append(out, letter{
			Kind: queue.ParkApproval, Tenant: a.Tenant, ID: a.ID, Agent: a.Agent, Since: a.Since, Until: a.Until,
			Text: report.Describe(messages.ToolCall{Name: a.Tool, Arguments: a.Arguments}), Approval: a,
		})
	}
	list, err := client.Runs().List(cmd.Context(), dispatcher.RunFilter{
		Tenant: tenant, Statuses: []messages.Status{messages.StatusWaiting}, Limit: control.MaxRunPage,
	})
	if err != nil {
		return nil, false, lag, err
	}
	asked := 0
	for _, r := range list.Runs {
		if r.Waits != queue.ParkAnswer && r.Waits != queue.ReasonBudget {
			continue
		}
		if asked++; asked > limit {
			return out, true, list.IndexLag, nil
		}
		why, err := client.Runs().Why(cmd.Context(), messages.Ref{Tenant: tenant, Run: r.ID})
		switch {
		case errors.Is(err, dispatcher.ErrNotFound):
			continue
		case err != nil:
			return nil, false, lag, err
		case why.Waits == r.Waits: // it has not continued since
			out = append(out, letter{Kind: why.Waits, Tenant: tenant, ID: r.ID, Agent: r.Agent, Since: why.Since, Until: why.Until, Text: why.Text, why: why})
		}
	}
	slices.SortStableFunc(out, func(a, b letter) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return out, approvals.More || list.Next != "", list.IndexLag, nil
}

func (c decisions) writeInbox(cmd *cobra.Command, s *conn.Shared, letters []letter, more bool) error {
	table := render.NewTable(cmd.OutOrStdout())
	for i := range letters {
		l := &letters[i]
		if s.Output.JSON {
			if err := c.WriteJSON(cmd, l); err != nil {
				return err
			}
			continue
		}
		if i == 0 {
			table.Row("KIND", "AGENT", "AGE", "WHAT", "DECIDE WITH")
		}
		table.Row(l.Kind, cmp.Or(l.Agent, "-"), render.Span(c.Options.Now().Sub(l.Since)), render.Truncate(render.Visible(l.shown(c.Options.Now())), render.ListedInput), l.decide())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch {
	case more:
		return render.Write(cmd.ErrOrStderr(), "there are more: see them with --limit\n")
	case len(letters) == 0 && !s.Output.JSON:
		return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("no run of tenant %s waits for a person\n", s.Tenant))
	default:
		return nil
	}
}

// shown is Text with its times in the zone of now.
func (l *letter) shown(now time.Time) string {
	if l.why == nil {
		return l.Text
	}
	return render.Why(l.why, now)
}

// decide is the command with which a person decides.
func (l *letter) decide() string {
	run := messages.Ref{Tenant: l.Tenant, Run: l.ID}
	switch {
	case l.Kind == queue.ParkAnswer:
		return render.Command("answer", run) + " TEXT"
	case l.Approval != nil:
		run.Run += " " + report.ShellWord(l.Approval.Call)
		fallthrough
	default:
		return render.Command("approve", run)
	}
}
