package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/schedules"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// timetables are the commands about schedules.
type timetables struct{ *conn.Caller }

func (c timetables) schedules() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedules",
		Short: "Submit tasks on a schedule",
		Long: "Submit tasks on a schedule. A schedule submits its task at each of its times. The id of such a run is the name of the\n" +
			"schedule and the time, in UTC.",
	}
	var pauseBy, resumeBy string
	pause := c.changeSchedule("pause NAME", "Pause a schedule until it is resumed", "paused", func(ctx context.Context, client *dispatcher.Client, ref control.ScheduleRef) (*control.ScheduleStatus, error) {
		return client.Schedules().Pause(ctx, ref, pauseBy)
	})
	resume := c.changeSchedule("resume NAME", "Resume a schedule at its next time", "resumed", func(ctx context.Context, client *dispatcher.Client, ref control.ScheduleRef) (*control.ScheduleStatus, error) {
		return client.Schedules().Resume(ctx, ref, resumeBy)
	})
	remove := c.changeSchedule("delete NAME", "Remove a schedule; its runs continue", "deleted", func(ctx context.Context, client *dispatcher.Client, ref control.ScheduleRef) (*control.ScheduleStatus, error) {
		return client.Schedules().Delete(ctx, ref)
	})
	c.ByFlag(pause, &pauseBy)
	c.ByFlag(resume, &resumeBy)
	cmd.AddCommand(c.applySchedule(), c.listSchedules(), c.showSchedule(), pause, resume, c.runSchedule(), remove)
	return cmd
}

func (c timetables) applySchedule() *cobra.Command {
	var (
		s        conn.Shared
		file, by string
		revision uint64
	)
	cmd := &cobra.Command{
		Use: "apply -f FILE|-", Short: "Store a schedule from YAML", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data, err := render.ReadFile(cmd, file, maxDefinition)
			if err != nil {
				return err
			}
			sc, err := schedules.Parse(data)
			if err != nil {
				return render.Usagef("%s: %v", file, err)
			}
			sc.Tenant = s.Tenant
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				applied, err := client.Schedules().Put(cmd.Context(), sc, by, optional(cmd, "if-revision", &revision))
				switch {
				case err != nil:
					return explainSchedule(err, sc.Ref())
				case s.Output.JSON:
					return c.WriteJSON(cmd, applied)
				}
				what := "applied"
				if !applied.Changed {
					what = "unchanged"
				}
				if err := render.Write(cmd.OutOrStdout(), fmt.Sprintf("schedule %s %s, revision %d\n", render.Visible(applied.Name), what, applied.Revision)); err != nil {
					return err
				}
				return c.writeNext(cmd.OutOrStdout(), applied.Next, sc.TimeZone)
			})
		},
	}
	s.Register(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "a file, or - for standard input")
	cmd.Flags().Uint64Var(&revision, "if-revision", 0, "only if this is the newest revision; 0: only if there is none")
	c.ByFlag(cmd, &by)
	_ = cmd.MarkFlagRequired("file") // it exists
	return cmd
}

// writeNext writes occurrences in the zone of their schedule, or that of who looks.
func (c timetables) writeNext(w io.Writer, next []time.Time, zone string) error {
	for _, at := range next {
		if err := render.Write(w, "next  "+c.when(at, zone)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func (c timetables) when(at time.Time, zone string) string {
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "" {
		loc = c.Options.Now().Location()
	}
	return at.In(loc).Format("Mon 2006-01-02 15:04:05 -07:00")
}

func (c timetables) listSchedules() *cobra.Command {
	var s conn.Shared
	cmd := &cobra.Command{
		Use: "list", Short: "List the schedules by name", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				list, err := client.Schedules().List(cmd.Context(), s.Tenant)
				switch {
				case err != nil:
					return render.Explain(err, messages.Ref{Tenant: s.Tenant})
				case s.Output.JSON:
					return conn.WriteLines(c.Caller, cmd, list)
				case len(list) == 0:
					return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("no schedules of tenant %s: store one with `longshore schedules apply`\n", s.Tenant))
				}
				table := render.NewTable(cmd.OutOrStdout())
				table.Row("NAME", "WHEN", "AGENT", "NEXT", "LAST")
				for _, sc := range list {
					next := "-"
					switch {
					case sc.Paused:
						next = "paused"
					case sc.Next != nil:
						next = c.when(*sc.Next, sc.TimeZone)
					}
					last := "-"
					if sc.Last != nil {
						last = string(sc.Last.Outcome)
					}
					table.Row(sc.Name, timing(sc.Cron, sc.TimeZone, sc.Every), sc.Agent, next, last)
				}
				return table.Flush()
			})
		},
	}
	s.Register(cmd)
	return cmd
}

func timing(cron, zone string, every messages.Duration) string {
	if cron == "" {
		return "every " + every.String()
	}
	return cron + " " + zone
}

func (c timetables) showSchedule() *cobra.Command {
	var s conn.Shared
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a schedule, its next times, the last one and those that were skipped", Args: oneName("name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				ref := control.ScheduleRef{Tenant: s.Tenant, Name: args[0]}
				st, err := client.Schedules().Get(cmd.Context(), ref)
				switch {
				case err != nil:
					return explainSchedule(err, ref)
				case s.Output.JSON:
					return c.WriteJSON(cmd, st)
				}
				return c.writeSchedule(cmd.OutOrStdout(), st)
			})
		},
	}
	s.Register(cmd)
	return cmd
}

func (c timetables) writeSchedule(w io.Writer, st *control.ScheduleStatus) error {
	sc := &st.Schedule
	rows := [][2]string{
		{"name", sc.Name},
		{"description", cmp.Or(sc.Description, "-")},
		{"when", timing(sc.Cron, sc.TimeZone, sc.Every)},
		{"agent", sc.Task.Agent},
		{"input", render.Truncate(render.Visible(sc.Task.Input.Shown()), render.ListedInput)},
		{"overlap", string(sc.Overlap)},
		{"catch up", string(sc.CatchUp)},
	}
	if sc.Paused {
		rows = append(rows, [2]string{"paused", "yes"})
	}
	if sc.Until != nil {
		rows = append(rows, [2]string{"until", c.when(*sc.Until, sc.TimeZone)})
	}
	for _, at := range st.Next {
		rows = append(rows, [2]string{"next", c.when(at, sc.TimeZone)})
	}
	if last := st.Last; last != nil {
		what := string(last.Outcome)
		if last.Reason != "" {
			what += ": " + last.Reason
		}
		rows = append(rows, [2]string{"last", c.when(last.At, sc.TimeZone)}, [2]string{"it was", what}, [2]string{"last run", cmp.Or(last.Run, "-")})
	}
	for _, sk := range slices.Backward(st.Skipped) {
		rows = append(rows, [2]string{"skipped", c.skipped(&sk, sc.TimeZone)})
	}
	table := render.NewTable(w)
	for _, row := range rows {
		table.Row(row[:]...)
	}
	return table.Flush()
}

// skipped is what did not run, and why.
func (c timetables) skipped(sk *control.Skipped, zone string) string {
	text := c.when(sk.At, zone)
	if sk.Last != nil {
		text = fmt.Sprintf("%d from %s to %s", sk.Count, text, c.when(*sk.Last, zone))
	}
	return text + ": " + sk.Reason
}

// changeSchedule is a command that does one thing to a schedule.
func (c timetables) changeSchedule(use, short, done string, do func(context.Context, *dispatcher.Client, control.ScheduleRef) (*control.ScheduleStatus, error)) *cobra.Command {
	var s conn.Shared
	cmd := &cobra.Command{
		Use: use, Short: short, Args: oneName("name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				ref := control.ScheduleRef{Tenant: s.Tenant, Name: args[0]}
				st, err := do(cmd.Context(), client, ref)
				switch {
				case err != nil:
					return explainSchedule(err, ref)
				case s.Output.JSON:
					return c.WriteJSON(cmd, st)
				}
				return render.Write(cmd.OutOrStdout(), fmt.Sprintf("schedule %s %s\n", render.Visible(args[0]), done))
			})
		},
	}
	s.Register(cmd)
	return cmd
}

func (c timetables) runSchedule() *cobra.Command {
	var s conn.Shared
	cmd := &cobra.Command{
		Use: "run NAME", Short: "Submit the task of a schedule now and print its id",
		Long: "Submit the task of a schedule now, even while it is paused, and print the id of the run. While its last run has not ended,\n" +
			"the schedule's overlap setting decides what happens.",
		Args: oneName("name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				ref := control.ScheduleRef{Tenant: s.Tenant, Name: args[0]}
				run, err := client.Schedules().Run(cmd.Context(), ref)
				switch {
				case err != nil:
					return explainSchedule(err, ref)
				case s.Output.JSON:
					return c.WriteJSON(cmd, control.SubmitReply{ID: run.Run})
				}
				return render.Write(cmd.OutOrStdout(), run.Run+"\n")
			})
		},
	}
	s.Register(cmd)
	return cmd
}

func explainSchedule(err error, ref control.ScheduleRef) error {
	say := func(format string, args ...any) error {
		return render.Worded(render.Visible(fmt.Sprintf(format, args...)), err)
	}
	field, wrong := errors.AsType[*messages.FieldError](err)
	switch {
	case errors.Is(err, dispatcher.ErrNoSchedule):
		return say("no schedule %s of tenant %s: see `longshore schedules list`", ref.Name, ref.Tenant)
	case errors.Is(err, dispatcher.ErrRevision):
		return say("schedule %s has been changed in the meantime: see `longshore schedules show %s`", ref.Name, ref.Name)
	case errors.Is(err, dispatcher.ErrNotRun):
		return say("schedule %s: %v", ref.Name, err)
	case wrong:
		return say("refused: %s: %s", field.Field, field.Reason)
	default:
		return render.Explain(err, messages.Ref{Tenant: ref.Tenant})
	}
}
