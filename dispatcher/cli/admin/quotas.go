package admin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// quotas are the commands about quotas.
type quotas struct{ *conn.Caller }

// quotasCommand groups what one does with quotas.
func (c quotas) quotasCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quotas",
		Short: "List, show and change what tenants, agents and providers may use",
		Long: "List, show and change quotas: how much a tenant may submit, have queued and spend, and how many runs of a tenant or an\n" +
			"agent work at once. A change takes effect within two seconds.",
	}
	cmd.AddCommand(c.quotasList(), c.quotasShow(), c.quotasSet(), c.quotasDelete())
	return cmd
}

func (c quotas) quotasList() *cobra.Command {
	var output render.Format
	cmd := &cobra.Command{
		Use: "list", Short: "List the quotas", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				list, err := client.Quotas().List(cmd.Context())
				switch {
				case err != nil:
					return render.Explain(err, messages.Ref{})
				case output.JSON:
					return conn.WriteLines(c.Caller, cmd, list)
				case len(list) == 0:
					return render.Write(cmd.ErrOrStderr(), "no quotas: nothing is limited\n")
				default:
					return writeQuotas(cmd.OutOrStdout(), list)
				}
			})
		},
	}
	output.Register(cmd)
	return cmd
}

func (c quotas) quotasShow() *cobra.Command {
	var output render.Format
	cmd := &cobra.Command{
		Use: "show KIND NAME", Short: "Show a quota, and how much of it is used", Args: oneQuota,
		Long: "Show a quota. KIND is tenant, agent or provider. For a tenant it also shows the usage; days and months are in UTC.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				state, err := client.Quotas().Get(cmd.Context(), quotaOf(args))
				switch {
				case err != nil:
					return render.Explain(err, messages.Ref{})
				case output.JSON:
					return c.WriteJSON(cmd, state)
				default:
					return writeQuota(cmd.OutOrStdout(), state)
				}
			})
		},
	}
	output.Register(cmd)
	return cmd
}

// grant is what the flags of set say.
type grant struct {
	quota  queue.Quota
	by     string
	output render.Format
}

func (c quotas) quotasSet() *cobra.Command {
	var g grant
	cmd := &cobra.Command{
		Use: "set KIND NAME", Short: "Change what a tenant, an agent or a provider may use", Args: oneQuota,
		Long: "Change a quota. Limits without a flag stay as they are; 0 removes a limit. It shows the old and the new quota.",
		Example: "  longshore quotas set tenant acme --max-queued 1000 --per-minute 60 --cost-per-day 25\n" +
			"  longshore quotas set tenant acme --per-minute 0",
		RunE: func(cmd *cobra.Command, args []string) error { return c.runQuotasSet(cmd, &g, quotaOf(args)) },
	}
	f := cmd.Flags()
	f.IntVar(&g.quota.Weight, "weight", 0, "share of slots when several tenants have tasks queued; 0 means 1")
	f.IntVar(&g.quota.MaxRunning, "max-running", 0, "maximum number of runs that work at once")
	f.IntVar(&g.quota.MaxQueued, "max-queued", 0, "maximum number of tasks that wait for a worker")
	f.IntVar(&g.quota.PerMinute, "per-minute", 0, "maximum number of tasks submitted per minute")
	f.Float64Var(&g.quota.CostPerDay, "cost-per-day", 0, "maximum US dollars for models per day (UTC)")
	f.Float64Var(&g.quota.CostPerMonth, "cost-per-month", 0, "maximum US dollars for models per month (UTC)")
	c.ByFlag(cmd, &g.by)
	g.output.Register(cmd)
	return cmd
}

// quotaTries bounds how often a change races with another one.
const quotaTries = 5

func (c quotas) runQuotasSet(cmd *cobra.Command, g *grant, of queue.QuotaRef) error {
	if !g.changes(cmd) {
		return render.Usagef("say what to change: --max-queued, --per-minute, --cost-per-day …; see --help")
	}
	if err := g.quota.Validate(of.Kind); err != nil {
		return usageOfQuota(err)
	}
	return c.With(cmd.Context(), func(client *dispatcher.Client) error {
		var err error
		for range quotaTries {
			var before *control.QuotaState
			if before, err = client.Quotas().Get(cmd.Context(), of); err != nil {
				break
			}
			var change *control.QuotaChange
			change, err = client.Quotas().Put(cmd.Context(), control.QuotaPut{
				QuotaRef: of, Quota: g.fill(cmd, before.Quota), IfRevision: &before.Revision, By: g.by,
			})
			if err == nil {
				return c.showChange(cmd, g.output, change)
			}
			if !errors.Is(err, dispatcher.ErrRevision) {
				break
			}
		}
		return explainQuota(err, of)
	})
}

// changes reports whether a limit is named.
func (*grant) changes(cmd *cobra.Command) bool {
	for _, l := range limits() {
		if cmd.Flags().Changed(l.flag) {
			return true
		}
	}
	return false
}

// fill is a quota with what the flags change.
func (g *grant) fill(cmd *cobra.Command, q queue.Quota) queue.Quota {
	for _, l := range limits() {
		if cmd.Flags().Changed(l.flag) {
			l.set(&q, g.quota)
		}
	}
	return q
}

func (c quotas) quotasDelete() *cobra.Command {
	var by string
	var output render.Format
	cmd := &cobra.Command{
		Use: "delete KIND NAME", Short: "Remove all limits of a tenant, an agent or a provider", Args: oneQuota,
		Long: "Remove all limits of a tenant, an agent or a provider. A pause stays until it is resumed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			of := quotaOf(args)
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				change, err := client.Quotas().Delete(cmd.Context(), control.QuotaDelete{QuotaRef: of, By: by})
				if err != nil {
					return explainQuota(err, of)
				}
				return c.showChange(cmd, output, change)
			})
		},
	}
	c.ByFlag(cmd, &by)
	output.Register(cmd)
	return cmd
}

func oneQuota(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return render.Usagef("needs a kind (tenant, agent or provider) and a name, got %d arguments", len(args))
	}
	if err := quotaOf(args).Check(); err != nil {
		return render.Misuse(err)
	}
	return nil
}

// quotaOf is the quota of two arguments.
func quotaOf(args []string) queue.QuotaRef {
	return queue.QuotaRef{Kind: queue.QuotaKind(args[0]), Name: args[1]}
}

// usageOfQuota names the flag of a limit that is not valid.
func usageOfQuota(err error) error {
	if field, ok := errors.AsType[*messages.FieldError](err); ok {
		for _, l := range limits() {
			if l.field == field.Field {
				return render.Usagef("--%s: %s", l.flag, field.Reason)
			}
		}
	}
	return render.Misuse(err)
}

func explainQuota(err error, of queue.QuotaRef) error {
	if errors.Is(err, dispatcher.ErrRevision) {
		return render.Worded(render.Visible(fmt.Sprintf("the quota of %s is being changed by others: see `longshore quotas show %s`", of, of)), err)
	}
	return render.Explain(err, messages.Ref{})
}

// limit is one of the limits of a quota.
type limit struct {
	flag, field, title string
	get                func(queue.Quota) float64
	set                func(q *queue.Quota, from queue.Quota)
	dollars            bool
}

// limits are all, in the order in which they are shown.
func limits() []limit {
	return []limit{
		{
			"weight", "weight", "weight", func(q queue.Quota) float64 { return float64(q.Weight) },
			func(q *queue.Quota, from queue.Quota) { q.Weight = from.Weight }, false,
		},
		{
			"max-running", "maxRunning", "running", func(q queue.Quota) float64 { return float64(q.MaxRunning) },
			func(q *queue.Quota, from queue.Quota) { q.MaxRunning = from.MaxRunning }, false,
		},
		{
			"max-queued", queue.QuotaMaxQueued, "queued", func(q queue.Quota) float64 { return float64(q.MaxQueued) },
			func(q *queue.Quota, from queue.Quota) { q.MaxQueued = from.MaxQueued }, false,
		},
		{
			"per-minute", queue.QuotaPerMinute, "per minute", func(q queue.Quota) float64 { return float64(q.PerMinute) },
			func(q *queue.Quota, from queue.Quota) { q.PerMinute = from.PerMinute }, false,
		},
		{
			"cost-per-day", queue.QuotaCostPerDay, "cost per day", func(q queue.Quota) float64 { return q.CostPerDay },
			func(q *queue.Quota, from queue.Quota) { q.CostPerDay = from.CostPerDay }, true,
		},
		{
			"cost-per-month", queue.QuotaCostPerMonth, "cost per month", func(q queue.Quota) float64 { return q.CostPerMonth },
			func(q *queue.Quota, from queue.Quota) { q.CostPerMonth = from.CostPerMonth }, true,
		},
	}
}

// amount is a value of the limit; no limit is a dash.
func (l *limit) amount(n float64) string {
	if n == 0 {
		return "-"
	}
	return l.number(n)
}

func (l *limit) number(n float64) string {
	if l.dollars {
		return messages.Money(n)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

func (c quotas) showChange(cmd *cobra.Command, f render.Format, change *control.QuotaChange) error {
	if f.JSON {
		return c.WriteJSON(cmd, change)
	}
	if change.Before == (queue.Quota{}) && change.After == (queue.Quota{}) {
		return render.Write(cmd.ErrOrStderr(), change.String()+" has no limits\n")
	}
	table := render.NewTable(cmd.OutOrStdout())
	table.Row(change.String(), "before", "after")
	for _, l := range limits() {
		before, after := l.get(change.Before), l.get(change.After)
		if before == 0 && after == 0 {
			continue
		}
		table.Row(l.title, l.amount(before), l.amount(after))
	}
	return table.Flush()
}

func writeQuotas(w io.Writer, list []control.QuotaState) error {
	table := render.NewTable(w)
	table.Row("KIND", "NAME", "WEIGHT", "RUNNING", "QUEUED", "PER MINUTE", "PER DAY", "PER MONTH", "PAUSED")
	for _, q := range list {
		row := []string{string(q.Kind), q.Name}
		for _, l := range limits() {
			row = append(row, l.amount(l.get(q.Quota)))
		}
		paused := "-"
		if p := q.Quota.Paused; p != nil {
			paused = cmp.Or(p.Reason, "yes")
		}
		table.Row(append(row, paused)...)
	}
	return table.Flush()
}

func writeQuota(w io.Writer, q *control.QuotaState) error {
	used := map[string]float64{}
	if u := q.Usage; u != nil {
		used = map[string]float64{
			queue.QuotaMaxQueued: float64(u.Queued), queue.QuotaPerMinute: float64(u.Submitted),
			queue.QuotaCostPerDay: u.CostToday, queue.QuotaCostPerMonth: u.CostThisMonth,
		}
	}
	table := render.NewTable(w)
	table.Row(q.String(), "limit", "used")
	for _, l := range limits() {
		now := "-"
		if n, ok := used[l.field]; ok {
			now = l.number(n)
		}
		table.Row(l.title, l.amount(l.get(q.Quota)), now)
	}
	if p := q.Quota.Paused; p != nil {
		table.Row("paused", "by "+cmp.Or(p.By, "unknown"), p.Reason)
	}
	return table.Flush()
}
