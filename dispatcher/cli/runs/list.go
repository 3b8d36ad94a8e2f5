package runs

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

const maxListed = dispatcher.MaxRuns

// filter is what the flags of list ask for.
type filter struct {
	conn.Shared
	since    time.Duration
	until    time.Duration
	statuses []string
	agent    string
	parent   string
	labels   map[string]string
	search   string
	code     string
	limit    int
}

// runs are the commands about runs.
type runs struct{ *conn.Caller }

func (c runs) list() *cobra.Command {
	var f filter
	cmd := &cobra.Command{
		Use: "list", SuggestFor: []string{"ps", "ls", "runs"},
		Short: "List the runs of the last 24 hours",
		Long: "List runs, newest first, preceded by those that no worker has started: queued, or waiting for their time.\n" +
			"With -o json each run is one line.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error { return c.runList(cmd, &f, client) })
		},
	}
	f.Register(cmd)
	f.registerFilter(cmd)
	cmd.Flags().IntVar(&f.limit, "limit", conn.DefaultListed, fmt.Sprintf("maximum number of runs, up to %d", maxListed))
	return cmd
}

// registerFilter adds the flags that say which runs are meant.
func (f *filter) registerFilter(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.since = render.Day
	flags.Var((*render.Ago)(&f.since), "since", "how far back to look, such as 90m or 7d")
	flags.Var((*render.Ago)(&f.until), "until", "only runs that were submitted at least this long ago, such as 10m or 7d")
	flags.StringSliceVar(&f.statuses, "status", nil, "only these: queued, running, waiting, completed, failed, cancelled; may be repeated")
	flags.StringVar(&f.agent, "agent", "", "only runs of this agent")
	flags.StringVar(&f.parent, "parent", "", "only runs to which this run delegated")
	flags.StringToStringVar(&f.labels, "label", nil, "only runs with this label, as key=value; may be repeated")
	flags.StringVar(&f.search, "search", "", "only runs with this text in id, input, error or result, ignoring case")
	flags.StringVar(&f.code, "code", "", "only runs that failed with this code, such as tool_failed")
}

func (f *filter) check() error {
	if err := f.Check("_"); err != nil { // for the tenant
		return err
	}
	if f.since <= 0 {
		return render.Usagef("--since: must be more than 0")
	}
	if f.until < 0 || f.until > f.since {
		return render.Usagef("--until: must be 0 to --since")
	}
	if f.limit < 1 || f.limit > maxListed {
		return render.Usagef("--limit: must be 1 to %d", maxListed)
	}
	if f.parent != "" && !strict.ValidToken(f.parent) {
		return render.Usagef("--parent: must be the id of a run")
	}
	for _, s := range f.statuses {
		switch messages.Status(s) {
		case messages.StatusQueued, messages.StatusRunning, messages.StatusWaiting, messages.StatusCompleted, messages.StatusFailed, messages.StatusCancelled:
		default:
			return render.Usagef("--status: %q is none of queued, running, waiting, completed, failed, cancelled", strict.Clip(s, 64))
		}
	}
	return nil
}

func (f *filter) wanted() []messages.Status {
	out := make([]messages.Status, len(f.statuses))
	for i, s := range f.statuses {
		out[i] = messages.Status(s)
	}
	return out
}

// runs are those that are meant.
func (f *filter) runs(now time.Time) dispatcher.RunFilter {
	wanted := dispatcher.RunFilter{
		Tenant: f.Tenant, Since: now.Add(-f.since), Statuses: f.wanted(), Agent: f.agent, Parent: f.parent, Labels: f.labels, Search: f.search,
		Code: messages.Code(f.code), Limit: f.limit,
	}
	if f.until > 0 {
		wanted.Until = now.Add(-f.until)
	}
	return wanted
}

func (c runs) runList(cmd *cobra.Command, f *filter, client *dispatcher.Client) error {
	list, err := client.Runs().List(cmd.Context(), f.runs(c.Options.Now()))
	if err != nil {
		return render.Explain(err, messages.Ref{Tenant: f.Tenant, Run: "_"})
	}
	if f.Output.JSON {
		err = c.writeRuns(cmd, list.Runs)
	} else {
		err = writeTable(cmd.OutOrStdout(), list.Runs, c.Options.Now())
	}
	if err != nil {
		return err
	}
	return render.Write(cmd.ErrOrStderr(), listNote(list.Found, len(list.Runs), list.Forgotten, f)+behindNote(list.IndexLag, c.Options.Now()))
}

// listNote says what the list does not show.
func listNote(found, shown, forgotten int, f *filter) string {
	switch {
	case forgotten > 0:
		return fmt.Sprintf("the newest %d of more than %d runs: look less far back with --since\n", shown, maxListed)
	case found > shown:
		return fmt.Sprintf("the newest %d of %d runs: see more with --limit\n", shown, found)
	case found == 0 && !f.Output.JSON:
		if f.agent != "" || f.parent != "" || f.search != "" || f.code != "" || len(f.labels) > 0 || len(f.statuses) > 0 {
			return fmt.Sprintf("no such runs of tenant %s within %s\n", f.Tenant, render.Span(f.since))
		}
		return fmt.Sprintf("no runs of tenant %s within %s\n", f.Tenant, render.Span(f.since))
	default:
		return ""
	}
}

func (c runs) writeRuns(cmd *cobra.Command, runs []*control.RunSummary) error {
	for _, r := range runs {
		if err := c.WriteJSON(cmd, r); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(w io.Writer, runs []*control.RunSummary, now time.Time) error {
	if len(runs) == 0 {
		return nil
	}
	table := render.NewTable(w)
	table.Row("ID", "AGENT", "STATUS", "STEPS", "AGE", "DURATION", "INPUT")
	for _, r := range runs {
		table.Row(row(r, now)...)
	}
	return table.Flush()
}

func row(r *control.RunSummary, now time.Time) []string {
	age, duration := "?", "?"
	if from := conn.SubmittedAt(r); !from.IsZero() {
		age = render.Span(now.Sub(from))
	}
	if r.Status == messages.StatusQueued {
		duration = "-"
	}
	if r.Started != nil {
		end := now
		if r.Finished != nil {
			end = *r.Finished
		}
		duration = render.Took(end.Sub(*r.Started))
	}
	agent := cmp.Or(render.Truncate(r.Agent, render.ListedToken), "?")
	status := string(r.Status)
	if why := cmp.Or(string(r.Code), r.Waits); r.Status == messages.StatusWaiting && why != "" {
		status += ": " + render.Truncate(render.Visible(why), render.ListedToken)
	}
	return []string{r.ID, agent, status, strconv.Itoa(r.Steps), age, duration, render.Truncate(render.Visible(r.Input), render.ListedInput)}
}
