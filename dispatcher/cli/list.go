package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	defaultListed = 100
	maxListed     = dispatcher.MaxRuns
	listedInput   = 60 // columns
	listedToken   = 64
)

// filter is what the flags of list ask for.
type filter struct {
	shared
	since    time.Duration
	until    time.Duration
	statuses []string
	agent    string
	labels   map[string]string
	search   string
	code     string
	limit    int
}

func (c *commands) list() *cobra.Command {
	var f filter
	cmd := &cobra.Command{
		Use: "list", SuggestFor: []string{"ps", "ls", "runs"},
		Short: "List the runs of the last day",
		Long: "List runs, newest first, before those the ones that no worker has begun: queued, or waiting for their time.\n" +
			"With -o json each run is a line.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return c.with(cmd.Context(), func(client *dispatcher.Client) error { return c.runList(cmd, &f, client) })
		},
	}
	f.register(cmd)
	f.registerFilter(cmd)
	cmd.Flags().IntVar(&f.limit, "limit", defaultListed, fmt.Sprintf("at most so many runs, up to %d", maxListed))
	return cmd
}

// registerFilter adds the flags that say which runs are meant.
func (f *filter) registerFilter(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.since = day
	flags.Var((*ago)(&f.since), "since", "how far back to look, such as 90m or 7d")
	flags.Var((*ago)(&f.until), "until", "only runs that were submitted so long ago or longer, such as 10m or 7d")
	flags.StringSliceVar(&f.statuses, "status", nil, "only these: queued, running, waiting, completed, failed, cancelled; may be repeated")
	flags.StringVar(&f.agent, "agent", "", "only runs of this agent")
	flags.StringToStringVar(&f.labels, "label", nil, "only runs with this label, as key=value; may be repeated")
	flags.StringVar(&f.search, "search", "", "only runs with this text in id, input, error or result; upper and lower case are the same")
	flags.StringVar(&f.code, "code", "", "only runs that failed for this reason, such as tool_failed")
}

func (f *filter) check() error {
	if err := f.shared.check("_"); err != nil { // for the tenant
		return err
	}
	if f.since <= 0 {
		return usagef("--since: must be more than 0")
	}
	if f.until < 0 || f.until > f.since {
		return usagef("--until: must be 0 to --since")
	}
	if f.limit < 1 || f.limit > maxListed {
		return usagef("--limit: must be 1 to %d", maxListed)
	}
	for _, s := range f.statuses {
		switch messages.Status(s) {
		case messages.StatusQueued, messages.StatusRunning, messages.StatusWaiting, messages.StatusCompleted, messages.StatusFailed, messages.StatusCancelled:
		default:
			return usagef("--status: %q is none of queued, running, waiting, completed, failed, cancelled", strict.Clip(s, 64))
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
		Tenant: f.tenant, Since: now.Add(-f.since), Statuses: f.wanted(), Agent: f.agent, Labels: f.labels, Search: f.search,
		Code: messages.Code(f.code), Limit: f.limit,
	}
	if f.until > 0 {
		wanted.Until = now.Add(-f.until)
	}
	return wanted
}

func (c *commands) runList(cmd *cobra.Command, f *filter, client *dispatcher.Client) error {
	list, err := client.Runs(cmd.Context(), f.runs(c.options.Now()))
	if err != nil {
		return explain(err, messages.Ref{Tenant: f.tenant, Run: "_"})
	}
	if f.output.json {
		err = c.writeRuns(cmd, list.Runs)
	} else {
		err = writeTable(cmd.OutOrStdout(), list.Runs, c.options.Now())
	}
	if err != nil {
		return err
	}
	return write(cmd.ErrOrStderr(), listNote(list.Found, len(list.Runs), list.Forgotten, f)+behindNote(list.IndexLag))
}

// listNote says what the list does not show.
func listNote(found, shown, forgotten int, f *filter) string {
	switch {
	case forgotten > 0:
		return fmt.Sprintf("the newest %d of more than %d runs: look less far back with --since\n", shown, maxListed)
	case found > shown:
		return fmt.Sprintf("the newest %d of %d runs: see more with --limit\n", shown, found)
	case found == 0 && !f.output.json:
		if f.agent != "" || f.search != "" || f.code != "" || len(f.labels) > 0 || len(f.statuses) > 0 {
			return fmt.Sprintf("no such runs of tenant %s within %s\n", f.tenant, span(f.since))
		}
		return fmt.Sprintf("no runs of tenant %s within %s\n", f.tenant, span(f.since))
	default:
		return ""
	}
}

func (c *commands) writeRuns(cmd *cobra.Command, runs []*messages.RunSummary) error {
	for _, r := range runs {
		if err := c.writeJSON(cmd, r); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(w io.Writer, runs []*messages.RunSummary, now time.Time) error {
	if len(runs) == 0 {
		return nil
	}
	table := newTable(w)
	writeRow(table, "ID", "AGENT", "STATUS", "STEPS", "AGE", "DURATION", "INPUT")
	for _, r := range runs {
		writeRow(table, row(r, now)...)
	}
	return flush(table)
}

func row(r *messages.RunSummary, now time.Time) []string {
	age, duration := "?", "?"
	if from := submittedAt(r); !from.IsZero() {
		age = span(now.Sub(from))
	}
	if r.Status == messages.StatusQueued {
		duration = "-"
	}
	if r.Started != nil {
		end := now
		if r.Finished != nil {
			end = *r.Finished
		}
		duration = took(end.Sub(*r.Started))
	}
	agent := cmp.Or(truncate(r.Agent, listedToken), "?")
	status := string(r.Status)
	if why := cmp.Or(string(r.Code), r.Waits); r.Status == messages.StatusWaiting && why != "" {
		status += ": " + truncate(visible(why), listedToken)
	}
	return []string{r.ID, agent, status, strconv.Itoa(r.Steps), age, duration, truncate(visible(r.Input), listedInput)}
}

// submittedAt is when a run was submitted, or began as far as is known; zero: it is not.
func submittedAt(r *messages.RunSummary) time.Time {
	if at := cmp.Or(r.Queued, r.Started); at != nil {
		return *at
	}
	return time.Time{}
}
