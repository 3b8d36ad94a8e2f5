package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// deadFlags are the flags of the commands for dead letters.
type deadFlags struct {
	conn.Shared
	kind, agent, code string
	since             time.Duration
	unaddressed, all  bool
}

func (g *deadFlags) registerOne(cmd *cobra.Command) {
	g.Register(cmd)
	cmd.Flags().BoolVar(&g.unaddressed, "unaddressed", false, "letters without a tenant, which are for the operator")
}

func (g *deadFlags) registerFilter(cmd *cobra.Command) {
	g.registerOne(cmd)
	flags := cmd.Flags()
	flags.StringVar(&g.kind, "kind", "", "only these: run, message or webhook")
	flags.StringVar(&g.agent, "agent", "", "only tasks of this agent")
	flags.StringVar(&g.code, "code", "", "only those with this error code")
	flags.Var((*render.Ago)(&g.since), "since", "only letters of the last duration, such as 90m or 7d")
}

// request is the filter of the flags, checked.
func (g *deadFlags) request(now time.Time) (control.DeadListRequest, error) {
	r := control.DeadListRequest{DeadFilter: control.DeadFilter{
		Unaddressed: g.unaddressed, Kind: control.DeadKind(g.kind), Agent: g.agent, Code: messages.Code(g.code),
	}}
	if !g.unaddressed {
		r.Tenant = g.Tenant
	}
	if g.since < 0 {
		return r, render.Usagef("--since: must be more than 0")
	}
	if g.since > 0 {
		at := now.Add(-g.since)
		r.Since = &at
	}
	return r, render.Misuse(r.Check())
}

// one is the request for a single letter.
func (g *deadFlags) one(arg string) (control.DeadRequest, error) {
	seq, err := strconv.ParseUint(arg, 10, 64)
	if err != nil || seq == 0 {
		return control.DeadRequest{}, render.Usagef("%q is not the number of a dead letter: see `longshore dead list`", strict.Clip(arg, 64))
	}
	r := control.DeadRequest{Seq: seq, Unaddressed: g.unaddressed}
	if !g.unaddressed {
		r.Tenant = g.Tenant
	}
	return r, render.Misuse(r.Check())
}

// filtered reports whether letters are chosen by what they are.
func (g *deadFlags) filtered() bool {
	return g.all || g.kind != "" || g.agent != "" || g.code != "" || g.since != 0
}

// chosen wants either numbers of letters, or a filter.
func (g *deadFlags) chosen(args []string) error {
	switch {
	case len(args) > 0 && g.filtered():
		return render.Usagef("give either numbers of letters, or --all, --kind, --agent, --code or --since")
	case len(args) == 0 && !g.filtered():
		return render.Usagef("needs the numbers of letters, or --all, --kind, --agent, --code or --since")
	default:
		return nil
	}
}

// deadLetters are the commands about dead letters.
type deadLetters struct{ *conn.Caller }

func (c deadLetters) dead() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dead", Short: "List, send again or remove dead letters",
		Long: "List, send again or remove dead letters. A dead letter is a task that cannot be worked, a message that\n" +
			"names no run, or a webhook that could not be delivered.",
	}
	cmd.AddCommand(c.listDead(), c.showDead(), c.redriveDead(), c.purgeDead())
	return cmd
}

func (c deadLetters) listDead() *cobra.Command {
	var g deadFlags
	limit := 0
	cmd := &cobra.Command{
		Use: "list", Short: "List dead letters, oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req, err := g.request(c.Options.Now())
			if err != nil {
				return err
			}
			if limit < 1 || limit > control.MaxDeadList {
				return render.Usagef("--limit: must be 1 to %d", control.MaxDeadList)
			}
			req.Limit = limit
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				list, err := client.DeadLetters().List(cmd.Context(), req)
				switch {
				case err != nil:
					return explainDead(err, g.Tenant)
				default:
					return c.writeDead(cmd, list, g.Output.JSON)
				}
			})
		},
	}
	g.registerFilter(cmd)
	cmd.Flags().IntVar(&limit, "limit", control.MaxDeadList, fmt.Sprintf("maximum number, up to %d", control.MaxDeadList))
	return cmd
}

func (c deadLetters) writeDead(cmd *cobra.Command, list *control.DeadList, asJSON bool) error {
	show := deadTable
	switch {
	case asJSON:
		show = conn.WriteLines[control.DeadLetter]
	case len(list.Letters) == 0:
		return render.Write(cmd.ErrOrStderr(), "no dead letters\n")
	}
	if err := show(c.Caller, cmd, list.Letters); err != nil {
		return err
	}
	if list.Next != 0 {
		return render.Write(cmd.ErrOrStderr(), "there are more: narrow it down with --agent, --code or --since\n")
	}
	return nil
}

func deadTable(c *conn.Caller, cmd *cobra.Command, letters []control.DeadLetter) error {
	table := render.NewTable(cmd.OutOrStdout())
	table.Row("LETTER", "KIND", "OF", "AGENT", "CODE", "TRIES", "AGE", "WHY")
	for i := range letters {
		l := &letters[i]
		table.Row(strconv.FormatUint(l.Seq, 10), string(l.Kind), cmp.Or(l.Run, l.Batch, "-"), cmp.Or(l.Agent, l.Host, "-"),
			string(l.Error.Code), strconv.Itoa(l.Attempts), render.Span(c.Options.Now().Sub(l.Time)), render.Truncate(render.Visible(l.Error.Message), report.MaxArguments))
	}
	return table.Flush()
}

func (c deadLetters) showDead() *cobra.Command {
	var g deadFlags
	cmd := &cobra.Command{
		Use: "show LETTER", Short: "Show a dead letter with its body, as JSON",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return render.Usagef("needs the number of one dead letter, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := g.one(args[0])
			if err != nil {
				return err
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				l, err := client.DeadLetters().Get(cmd.Context(), req)
				if err != nil {
					return explainDead(err, g.Tenant)
				}
				return c.WriteJSON(cmd, l)
			})
		},
	}
	g.registerOne(cmd)
	return cmd
}

func (c deadLetters) purgeDead() *cobra.Command {
	var g deadFlags
	sure := false
	cmd := &cobra.Command{
		Use: "purge [LETTER…]", Short: "Remove dead letters",
		Example: "  longshore dead purge 12 13\n  longshore dead purge --code unknown_agent --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := g.chosen(args); err != nil {
				return err
			}
			if g.filtered() {
				if !sure {
					return render.Usagef("purged letters cannot be restored: check with `longshore dead list`, then give --yes")
				}
				return c.everyDead(cmd, &g, dispatcher.DeadLetters.PurgeAll)
			}
			requests, err := g.each(args)
			if err != nil {
				return err
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				for _, req := range requests {
					if _, err := client.DeadLetters().Purge(cmd.Context(), req); err != nil {
						return explainDead(err, g.Tenant)
					}
					if err := c.told(cmd, &g, control.DeadBulk{Purged: []uint64{req.Seq}}); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	g.registerFilter(cmd)
	cmd.Flags().BoolVar(&g.all, "all", false, "all letters of the tenant")
	cmd.Flags().BoolVar(&sure, "yes", false, "with --all or a filter: confirm that they are to be removed")
	return cmd
}

// each is a request for each letter.
func (g *deadFlags) each(args []string) ([]control.DeadRequest, error) {
	out := make([]control.DeadRequest, len(args))
	for i, arg := range args {
		var err error
		if out[i], err = g.one(arg); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// everyDead does the same with all letters that fit, a page after the other.
func (c deadLetters) everyDead(cmd *cobra.Command, g *deadFlags, do func(dispatcher.DeadLetters, context.Context, control.DeadListRequest) (*control.DeadBulk, error)) error {
	req, err := g.request(c.Options.Now())
	if err != nil {
		return err
	}
	return c.With(cmd.Context(), func(client *dispatcher.Client) error {
		failed, handled := 0, 0
		for {
			out, err := do(client.DeadLetters(), cmd.Context(), req)
			if err != nil {
				return explainDead(err, g.Tenant)
			}
			if err := c.told(cmd, g, *out); err != nil {
				return err
			}
			failed, handled = failed+len(out.Failed), handled+len(out.Redriven)+len(out.Purged)
			if req.After = out.Next; req.After == 0 {
				break
			}
		}
		if failed > 0 {
			return fmt.Errorf("%s could not be sent again", render.Count(int64(failed), "letter"))
		}
		if handled == 0 && !g.Output.JSON {
			return render.Write(cmd.ErrOrStderr(), "no dead letters\n")
		}
		return nil
	})
}

// told reports what happened to letters.
func (c deadLetters) told(cmd *cobra.Command, g *deadFlags, out control.DeadBulk) error {
	if g.Output.JSON {
		return c.WriteJSON(cmd, out)
	}
	for _, f := range out.Failed {
		if err := render.Write(cmd.ErrOrStderr(), render.Visible(fmt.Sprintf("letter %d: %s", f.Seq, f.Error.Detail))+"\n"); err != nil {
			return err
		}
	}
	for _, r := range out.Redriven {
		what := "is run " + r.ID
		if r.Kind == control.DeadWebhook {
			what = "is delivered again"
		}
		if err := render.Write(cmd.OutOrStdout(), fmt.Sprintf("letter %d %s\n", r.Seq, what)); err != nil {
			return err
		}
	}
	for _, seq := range out.Purged {
		if err := render.Write(cmd.OutOrStdout(), fmt.Sprintf("letter %d is removed\n", seq)); err != nil {
			return err
		}
	}
	return nil
}

func explainDead(err error, tenant string) error {
	switch {
	case errors.Is(err, dispatcher.ErrNoLetter):
		return render.Worded(render.Visible(fmt.Sprintf("no such dead letter of tenant %s: see `longshore dead list`", tenant)), err)
	case errors.Is(err, dispatcher.ErrConflict):
		return render.Worded(render.Visible(err.Error()+": choose another --new-id"), err)
	case errors.Is(err, dispatcher.ErrUnknownAgent):
		return render.Worded(render.Visible(render.UnknownAgent(err)+": store it with `longshore agents apply`, or choose another with --set agent=NAME"), err)
	default:
		return render.Explain(err, messages.Ref{Tenant: tenant})
	}
}
