// Package policy is the command `longshore policy`. It stands apart from the other client commands because it links the
// rules of the worker.
package policy

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/policy"
)

const (
	maxFile     = 1 << 20 // bytes of a policy file
	defaultRuns = 50
	mostRuns    = 1000
)

// Command is `longshore policy`. With raw, JSON is written as it is, for an output that is no terminal.
func Command(connect conn.Connect, raw bool) *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Check rules against recorded runs before they take effect"}
	cmd.AddCommand(testCommand(&conn.Caller{Connect: connect, Options: report.Options{Raw: raw}}))
	return cmd
}

// trial is `longshore policy test`.
type trial struct {
	conn.Shared

	caller *conn.Caller
	agent  string
	limit  int
}

func testCommand(c *conn.Caller) *cobra.Command {
	t := &trial{caller: c}
	cmd := &cobra.Command{
		Use: "test FILE [RUN...]", Short: "Show what the rules of a file would have done to recorded runs",
		Long: "Read the logs of runs and show what the rules of a policy file, and those of the runs' agents, would have blocked,\n" +
			"redacted, or had wait for a person. Without RUN it is the newest runs of the tenant. Nothing is called and nothing\n" +
			"changes. The file is the one that LONGSHORE_POLICY names for workers.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return render.Usagef("needs the policy file: longshore policy test policy.yaml")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(cmd, args[0], args[1:]) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveDefault // a file
			}
			return c.Completes(conn.Runs)(cmd, args, prefix)
		},
	}
	t.Register(cmd)
	cmd.Flags().StringVar(&t.agent, "agent", "", "only runs of this agent")
	cmd.Flags().IntVar(&t.limit, "limit", defaultRuns, fmt.Sprintf("how many of the newest runs, %d at most", mostRuns))
	return cmd
}

// line is one finding as it is printed, or of a run that cannot be read.
type line struct {
	Run    string               `json:"run"`
	Step   int                  `json:"step,omitempty"`
	Tool   string               `json:"tool,omitempty"`
	Point  messages.PolicyPoint `json:"point,omitempty"`
	Action string               `json:"action,omitempty"`
	Rule   string               `json:"rule,omitempty"`
	Source string               `json:"source,omitempty"`
	Reason string               `json:"reason,omitempty"`
}

func (t *trial) run(cmd *cobra.Command, file string, ids []string) error {
	data, err := document.Read(file, maxFile)
	if err != nil {
		return render.Misuse(err)
	}
	rules, err := settings.ParsePolicy(data)
	if err != nil {
		return render.Usagef("%s: %v", file, err)
	}
	if t.limit < 1 || t.limit > mostRuns {
		return render.Misuse(&messages.FieldError{Field: "--limit", Reason: fmt.Sprintf("must be 1 to %d", mostRuns)})
	}
	for _, id := range ids {
		if err := t.Check(id); err != nil {
			return err
		}
	}
	return t.caller.With(cmd.Context(), func(client *dispatcher.Client) error {
		if len(ids) == 0 {
			list, err := client.Runs().List(cmd.Context(), dispatcher.RunFilter{Tenant: t.Tenant, Agent: t.agent, Limit: t.limit})
			if err != nil {
				return render.OneLine(err)
			}
			for i := range list.Runs {
				ids = append(ids, list.Runs[i].ID)
			}
		}
		return t.review(cmd, client, rules, ids)
	})
}

// review judges the runs one after the other. A log that is gone, or newer than this program, is reported and left out.
func (t *trial) review(cmd *cobra.Command, client *dispatcher.Client, rules *settings.PolicyRules, ids []string) error {
	layers := []policy.Layer{{Source: "fleet", Policy: rules.Fleet}, {Source: "tenant " + t.Tenant, Policy: rules.Tenants[t.Tenant]}}
	var all []line
	touched, unread := 0, 0
	for _, id := range ids {
		run := messages.Ref{Tenant: t.Tenant, Run: id}
		found, err := policy.Review(client.Runs().Log(cmd.Context(), run), func(s *record.Started) (*policy.Rules, error) {
			var above []record.RulesFor
			if s.Parent != nil {
				above = s.Parent.Rules
			}
			return policy.For(layers, above, &s.Agent)
		})
		switch {
		case cmd.Context().Err() != nil:
			return cmd.Context().Err()
		case errors.Is(err, dispatcher.ErrNotFound) || errors.Is(err, dispatcher.ErrNotBegun) || errors.Is(err, record.ErrNewerVersion):
			unread++
			continue
		case err != nil:
			return render.Explain(err, run)
		}
		if len(found) > 0 {
			touched++
		}
		for _, f := range found {
			all = append(all, line{id, f.Step, f.Tool, f.Point, f.Action, f.Rule, f.Source, f.Reason})
		}
	}
	if t.Output.JSON {
		return conn.WriteLines(t.caller, cmd, all)
	}
	if len(all) > 0 {
		table := render.NewTable(cmd.OutOrStdout())
		table.Row("RUN", "STEP", "TOOL", "POINT", "ACTION", "RULE", "SOURCE")
		for _, l := range all {
			table.Row(l.Run, strconv.Itoa(l.Step), l.Tool, string(l.Point), l.Action, l.Rule, l.Source)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("%d of %s would have met a rule\n", touched, render.Count(int64(len(ids)-unread), "run"))
	if unread > 0 {
		text += fmt.Sprintf("%d more cannot be read: they have not begun, or their logs are gone or of a newer version\n", unread)
	}
	if _, err := fmt.Fprint(cmd.ErrOrStderr(), text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
