package runs

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
)

// consignment is what the flags of batch submit ask for.
type consignment struct {
	conn.Shared
	spec     dispatcher.BatchSpec
	maxCost  float64
	expires  time.Duration
	template string
	dry      bool
	wait     bool
	webhook  string
}

func (c batches) batchSubmit() *cobra.Command {
	var o consignment
	cmd := &cobra.Command{
		Use: "submit FILE|-", Short: "Submit a batch",
		Long: "Submit a file with one task per line and print the batch's id. A line has a custom_id and the fields of a task,\n" +
			"or with --template a custom_id and \"vars\". A file is read twice: first all lines are checked.\n" +
			"An interrupted submission may be repeated with the same --id: each custom_id becomes one task.",
		Example: "  longshore batch submit questions.jsonl --max-cost 5 --wait\n" +
			"  longshore batch submit cities.jsonl --template task.json --dry-run",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return render.Usagef("needs one file, or - for standard input; got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.fill(cmd, c.Options.Now()); err != nil {
				return err
			}
			in, twice, done, err := openBatch(cmd, args[0])
			if err != nil {
				return err
			}
			defer done()
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				return explainBatch(c.runBatch(cmd, &o, client, in, twice), o.spec.BatchRef)
			})
		},
	}
	o.Register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.spec.ID, "id", "", "id of the batch; a new one by default")
	flags.StringVar(&o.spec.Name, "name", "", "a name for people")
	flags.Float64Var(&o.maxCost, "max-cost", 0, "US dollars; once they are spent, the rest is cancelled")
	flags.DurationVar(&o.expires, "expires", messages.DefaultBatchExpiry, "lines that have not ended after this time are abandoned")
	flags.IntVar(&o.spec.Concurrency, "concurrency", 0, "how many of its tasks may be queued, running or waiting at once (default and maximum in progress: 1000)")
	flags.BoolVar(&o.spec.SkipInvalid, "skip-invalid", false, "skip invalid lines instead of submitting nothing")
	flags.StringVar(&o.template, "template", "", "a task as JSON with placeholders such as {{city}} for the variables of each line")
	flags.BoolVar(&o.dry, "dry-run", false, "check all lines, count their tokens, estimate their cost, and submit nothing")
	flags.StringVar(&o.webhook, "webhook", "", "URL that is called when the batch has ended")
	flags.BoolVar(&o.wait, "wait", false, "follow it until it has ended")
	return cmd
}

func (o *consignment) fill(cmd *cobra.Command, now time.Time) error {
	if cmd.Flags().Changed("id") && o.spec.ID == "" {
		return render.Usagef("--id: is empty")
	}
	o.spec.Tenant = o.Tenant
	o.spec.SetDefaults()
	if cmd.Flags().Changed("max-cost") {
		o.spec.MaxCost = &o.maxCost
	}
	if cmd.Flags().Changed("concurrency") && o.spec.Concurrency < 1 {
		return render.Usagef("--concurrency: must be at least 1")
	}
	if cmd.Flags().Changed("webhook") {
		o.spec.Webhook = &messages.Webhook{URL: o.webhook}
	}
	at := now.UTC().Add(o.expires)
	o.spec.ExpiresAt = &at
	if err := errors.Join(o.spec.BatchRef.Check(), o.spec.BatchSettings.Check(now)); err != nil {
		return render.Misuse(err)
	}
	if o.template == "" {
		return nil
	}
	data, err := document.Read(o.template, render.MaxTask)
	if err != nil {
		return render.Misuse(err)
	}
	o.spec.Template, err = messages.ParseBatchTemplate(data)
	return render.Misuse(err)
}

func (c batches) runBatch(cmd *cobra.Command, o *consignment, client *dispatcher.Client, in io.Reader, twice bool) error {
	bar := &report.Bar{Options: &c.Options, Out: cmd.ErrOrStderr()}
	defer bar.Clear()
	told := 0
	o.spec.Refused = func(e *messages.LineError) {
		if told++; told <= messages.MaxBatchErrors {
			bar.Clear()
			_ = render.Write(cmd.ErrOrStderr(), render.Visible(e.Error())+"\n")
		}
	}
	if o.dry || twice {
		o.spec.Progress = func(n int) { bar.Draw("checked " + render.Count(int64(n), "line")) }
		o.spec.Estimate = o.dry
		check, err := client.Batches().Check(cmd.Context(), o.spec, dispatcher.ReadLines(in))
		bar.Clear()
		switch {
		case err != nil:
			return err
		case o.dry:
			return c.showCheck(cmd, o, check)
		case check.Invalid > 0 && !o.spec.SkipInvalid:
			return fmt.Errorf("nothing was submitted: %s", invalid(check.Lines, check.Invalid, o.spec.SkipInvalid))
		}
		if file, ok := in.(io.Seeker); ok {
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return fmt.Errorf("read the file again: %w", err)
			}
		}
		o.spec.Refused = nil // told before
	}
	o.spec.Progress = func(n int) { bar.Draw("submitted " + render.Count(int64(n), "line")) }
	b, err := client.Batches().Submit(cmd.Context(), o.spec, dispatcher.ReadLines(in))
	bar.Clear()
	switch {
	case errors.Is(err, dispatcher.ErrBatchInvalid):
		return fmt.Errorf("nothing of batch %s was run: %s", b.ID, invalid(b.Counts.Total, b.Counts.Invalid, o.spec.SkipInvalid))
	case err != nil:
		_ = render.Write(cmd.ErrOrStderr(), fmt.Sprintf("nothing of batch %s runs unless `longshore batch status %s` says so: submit it again with --id %s\n", o.spec.ID, o.spec.ID, o.spec.ID))
		return err
	case o.wait:
		if err := c.submitted(cmd, &conn.Shared{Tenant: o.Tenant}, b); err != nil {
			return err
		}
		return c.follow(cmd, &o.Shared, client, b.BatchRef)
	default:
		return c.submitted(cmd, &o.Shared, b)
	}
}

func (c batches) showCheck(cmd *cobra.Command, o *consignment, check *dispatcher.BatchCheck) error {
	var err error
	if o.Output.JSON {
		err = c.WriteJSON(cmd, check)
	} else {
		err = render.Write(cmd.OutOrStdout(), fmt.Sprintf("%s valid, %d invalid, about %s of input; nothing was submitted\n%s",
			render.Count(int64(check.Lines), "line"), check.Invalid, render.Tokens(check.Tokens), estimate(check)))
	}
	if err == nil && check.Invalid > 0 && (!o.spec.SkipInvalid || check.Lines == 0) {
		err = errors.New(invalid(check.Lines, check.Invalid, o.spec.SkipInvalid))
	}
	return err
}

// invalid says how many lines are invalid, and what to do: to skip them helps if others are valid.
func invalid(valid, wrong int, skips bool) string {
	do := "correct the file and submit it again"
	if valid > 0 && !skips {
		do = "correct the file, or skip them with --skip-invalid"
	}
	return fmt.Sprintf("%d of %s invalid; %s", wrong, render.Count(int64(valid+wrong), "line"), do)
}

// estimate is what a batch would cost, on a line; empty when no line is right.
func estimate(check *dispatcher.BatchCheck) string {
	c := check.Cost
	switch {
	case c == nil:
		return ""
	case c.USD == nil:
		return "cost unknown: " + render.Visible(c.Unknown) + "\n"
	case c.Unknown == "":
		return fmt.Sprintf("cost about %s, as %s cost\n", messages.Money(*c.USD), render.Count(int64(c.Runs), "past run"))
	default:
		return fmt.Sprintf("cost about %s for %d of %d lines, as %s cost; of the others unknown: %s\n",
			messages.Money(*c.USD), c.Lines, check.Lines, render.Count(int64(c.Runs), "past run"), render.Visible(c.Unknown))
	}
}

// followEvery is how often a batch that is followed is asked for.
const followEvery = time.Second

// follow shows how a batch proceeds, until it has ended.
func (c batches) follow(cmd *cobra.Command, s *conn.Shared, client *dispatcher.Client, ref messages.BatchRef) error {
	bar := &report.Bar{Options: &c.Options, Out: cmd.ErrOrStderr()}
	defer bar.Clear()
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		b, err := client.Batches().Get(cmd.Context(), ref)
		switch {
		case err != nil && render.WasInterrupted(cmd.Context()):
			return detachedBatch(ref, err)
		case err != nil:
			return err
		}
		if b.Status.Ended() {
			bar.Clear()
			if err := c.showBatch(cmd, s, b); err != nil {
				return err
			}
			if n := b.Counts.Total - b.Counts.Completed; n > 0 || b.Status != messages.BatchCompleted {
				return fmt.Errorf("batch %s is %s: %d of %d lines did not complete", b.ID, b.Status, n, b.Counts.Total)
			}
			return nil
		}
		bar.Draw(c.progressOf(b))
		select {
		case <-ticker.C:
		case <-cmd.Context().Done():
			return detachedBatch(ref, cmd.Context().Err())
		}
	}
}

// detachedBatch says that a batch continues without being followed.
func detachedBatch(ref messages.BatchRef, err error) *render.Interrupted {
	of := messages.Ref{Tenant: ref.Tenant, Run: ref.ID}
	return &render.Interrupted{
		Text: fmt.Sprintf("Detached; batch %s is still running. Follow: %s --wait. Stop: %s.", ref.ID, render.Command("batch status", of), render.Command("batch cancel", of)),
		Err:  err,
	}
}

// progressOf is a batch on one line.
func (batches) progressOf(b *messages.Batch) string {
	n := &b.Counts
	text := fmt.Sprintf("%s %d of %d ended", report.Cells(n.Ended(), n.Total), n.Ended(), n.Total)
	if n.Failed > 0 {
		text += fmt.Sprintf(", %d failed", n.Failed)
	}
	text += " · " + cost(b)
	if b.SecondsTo != nil {
		text += " · about " + left(*b.SecondsTo) + " left"
	}
	return text
}
