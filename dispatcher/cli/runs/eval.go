package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/dispatcher/evaluation"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// OpenFleet opens a client of a fleet, or starts one with the agents of a folder; the function it returns ends what it
// began.
type OpenFleet func(cmd *cobra.Command, agents string) (*dispatcher.Client, func() error, error)

// ErrBelowThreshold means that fewer runs of a suite passed than it asks for.
var ErrBelowThreshold = errors.New("below the threshold")

type evalFlags struct {
	conn.Shared
	options evaluation.Options
	agents  string
}

// Eval is the command `longshore eval`. Options are those of Commands.
func Eval(open OpenFleet, options report.Options) *cobra.Command {
	var f evalFlags
	c := evaluations{&conn.Caller{Options: options.WithDefaults()}}
	cmd := &cobra.Command{
		Use: "eval SUITE.yaml", Short: "Run a suite of tasks and judge their results",
		Long: "Run every case of a suite through the queue, compare its result with what the suite expects, and report how many\n" +
			"passed and what they used. With NATS_URL it uses that fleet; otherwise it starts one in this process.\n\n" +
			"It exits with 0 if enough runs passed for the suite's threshold, 1 if not, 2 if the suite is invalid.",
		Example: "  longshore eval deploy/examples/evals/demo.yaml\n  longshore eval suite.yaml --repeat 5 --agent candidate -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return render.Usagef("needs the file of one suite, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.runEval(cmd, open, &f, args[0]) },
	}
	f.Register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.options.Agent, "agent", "", "agent that works every case, instead of the suite's")
	flags.IntVar(&f.options.Repeat, "repeat", 0, "how often each case is run, instead of the suite's value")
	flags.IntVar(&f.options.Parallel, "parallel", 0, "how many runs work at once, instead of the suite's value")
	flags.StringVar(&f.agents, "agents", "", "folder with agent definitions; only with the fleet in this process")
	return cmd
}

func (f *evalFlags) check(cmd *cobra.Command) error {
	for name, value := range map[string]string{"agent": f.options.Agent, "tenant": f.Tenant} {
		if cmd.Flags().Changed(name) && !strict.ValidToken(value) {
			return render.Usagef("--%s: must be 1 to 64 characters of A-Z a-z 0-9 _ -", name)
		}
	}
	for name, value := range map[string]int{"repeat": f.options.Repeat, "parallel": f.options.Parallel} {
		if cmd.Flags().Changed(name) && (value < 1 || value > 256) {
			return render.Usagef("--%s: must be 1 to 256", name)
		}
	}
	f.options.Tenant = f.Tenant
	return nil
}

// evaluations is the command that runs suites.
type evaluations struct{ *conn.Caller }

func (c evaluations) runEval(cmd *cobra.Command, open OpenFleet, f *evalFlags, file string) (err error) {
	if err := f.check(cmd); err != nil {
		return err
	}
	data, err := render.ReadFile(cmd, file, evaluation.MaxFile)
	if err != nil {
		return err
	}
	suite, err := evaluation.Parse(data)
	if err != nil {
		return &render.UsageError{Err: render.OneLine(fmt.Errorf("read suite %s: %w", file, err))} // its fields are not flags
	}
	client, done, err := open(cmd, f.agents)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	bar := &report.Bar{Options: &c.Options, Out: cmd.ErrOrStderr()}
	f.options.Progress = func(p evaluation.Progress) {
		bar.Draw(fmt.Sprintf("%s %d of %d · %d passed", report.Cells(p.Done, p.All), p.Done, p.All, p.Passed))
	}
	report, err := evaluation.Run(cmd.Context(), client, suite, f.options)
	bar.Clear()
	if err != nil {
		return c.explainEval(cmd.Context(), err, file, f.Tenant)
	}
	if f.Output.JSON {
		err = c.WriteJSON(cmd, report)
	} else {
		err = writeReport(cmd.OutOrStdout(), report, c.Options.Ephemeral)
	}
	if err == nil && !report.Passed {
		err = fmt.Errorf("%w: %d of %d runs passed, and the suite requires %g", ErrBelowThreshold, report.Good, report.Runs, report.Threshold)
	}
	return err
}

func (c evaluations) explainEval(ctx context.Context, err error, file, tenant string) error {
	var bad *evaluation.BadCase
	var field *messages.FieldError
	switch {
	case errors.As(err, &bad):
		return &render.UsageError{Err: render.OneLine(fmt.Errorf("suite %s: %w", file, err))}
	case errors.As(err, &field):
		return render.Misuse(err)
	case render.WasInterrupted(ctx) && c.Options.Ephemeral:
		return render.GivenUp("the evaluation", err)
	case render.WasInterrupted(ctx):
		of := messages.Ref{Tenant: tenant}
		return &render.Interrupted{
			Text: fmt.Sprintf("Detached; the runs of the suite that were submitted are still running. See them: %s. Stop one: %s.", render.Command("list", of), render.CommandFor("cancel", of)),
			Err:  err,
		}
	default:
		return render.OneLine(err)
	}
}

// caseRow is all runs of a case.
type caseRow struct {
	name                  string
	runs, passed, steps   int
	tokens, millis, ended int64
}

func rowsOf(r *evaluation.Report) []*caseRow {
	var rows []*caseRow
	byName := map[string]*caseRow{}
	for _, o := range r.Cases {
		row := byName[o.Case]
		if row == nil {
			row = &caseRow{name: o.Case}
			byName[o.Case], rows = row, append(rows, row)
		}
		row.runs++
		if o.Passed {
			row.passed++
		}
		if o.Status != "" {
			row.ended++
			row.steps += o.Steps
			row.tokens += o.Tokens
			row.millis += o.Millis
		}
	}
	return rows
}

// writeReport writes a report for people. It omits the ids of runs of an ephemeral fleet, which no longer exist.
func writeReport(w io.Writer, r *evaluation.Report, ephemeral bool) error {
	table := render.NewTable(w)
	table.Row("CASE", "PASSED", "STEPS", "TOKENS", "TIME")
	for _, row := range rowsOf(r) {
		n := max(row.ended, 1)
		cells := []string{
			row.name, fmt.Sprintf("%d of %d", row.passed, row.runs), mean(float64(row.steps) / float64(n)),
			strconv.FormatInt(row.tokens/n, 10), render.Millis(row.millis / n),
		}
		if row.ended == 0 {
			cells = append(cells[:2], "-", "-", "-")
		}
		table.Row(cells...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for _, o := range r.Cases {
		for _, why := range o.Why {
			fmt.Fprintf(&b, "\n%s: %s", o.Case, render.Visible(why))
			if !ephemeral {
				b.WriteString("\n  run " + o.ID)
			}
		}
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	return render.Write(w, b.String()+"\n"+totals(r))
}

// totals are the numbers of a suite.
func totals(r *evaluation.Report) string {
	cost := "unknown"
	if r.Usage.Cost != nil {
		cost = messages.Money(*r.Usage.Cost)
	}
	return fmt.Sprintf("%d of %d runs passed (%.0f %%), %d completed; threshold %.0f %%\n", r.Good, r.Runs, 100*r.Rate, r.Completed, 100*r.Threshold) +
		fmt.Sprintf("steps   %s a run, at most %g\n", mean(r.Steps.Mean), r.Steps.Max) +
		fmt.Sprintf("time    %s a run, 95 %% within %s\n", render.Millis(int64(r.Millis.Mean)), render.Millis(int64(r.Millis.P95))) +
		fmt.Sprintf("tools   %s, %.1f %% failed, %s each, 95 %% within %s\n", render.Count(int64(r.Tools.Calls), "call"), 100*r.Tools.ErrorRate,
			render.Millis(int64(r.Tools.Millis.Mean)), render.Millis(int64(r.Tools.Millis.P95))) +
		fmt.Sprintf("tokens  %d: %d in, %d out\n", r.Usage.Tokens.Total, r.Usage.Tokens.Input, r.Usage.Tokens.Output) +
		fmt.Sprintf("cost    %s\n", cost)
}

func mean(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
