package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
)

// consignment is what the flags of batch submit ask for.
type consignment struct {
	shared
	spec     dispatcher.BatchSpec
	maxCost  float64
	expires  time.Duration
	template string
	dry      bool
	wait     bool
	webhook  string
}

func (c *commands) batchSubmit() *cobra.Command {
	var o consignment
	cmd := &cobra.Command{
		Use: "submit FILE|-", Short: "Submit a batch",
		Long: "Submit a file with a task on each line and print the batch's id. A line has a custom_id and the fields of a task,\n" +
			"or with --template a custom_id and \"vars\". A file is read twice: first all lines are checked.\n" +
			"A submission that was cut may be made again with the same --id: each custom_id becomes one task.",
		Example: "  longshore batch submit questions.jsonl --max-cost 5 --wait\n" +
			"  longshore batch submit cities.jsonl --template task.json --dry-run",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("needs one file, or - for the standard input; got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.fill(cmd, c.options.Now()); err != nil {
				return err
			}
			in, twice, done, err := openBatch(cmd, args[0])
			if err != nil {
				return err
			}
			defer done()
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				return explainBatch(c.runBatch(cmd, &o, client, in, twice), o.spec.BatchRef)
			})
		},
	}
	o.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.spec.ID, "id", "", "id of the batch; a new one by default")
	flags.StringVar(&o.spec.Name, "name", "", "a name for people")
	flags.Float64Var(&o.maxCost, "max-cost", 0, "US dollars; when they are spent the rest is cancelled")
	flags.DurationVar(&o.expires, "expires", messages.DefaultBatchExpiry, "what has not ended after this time is given up")
	flags.IntVar(&o.spec.Concurrency, "concurrency", 0, "how many of its tasks are queued, run or wait at once; by default 1000, as for all batches")
	flags.BoolVar(&o.spec.SkipInvalid, "skip-invalid", false, "leave wrong lines out, instead of submitting nothing")
	flags.StringVar(&o.template, "template", "", "a task as JSON with places such as {{city}} for the variables of each line")
	flags.BoolVar(&o.dry, "dry-run", false, "check all lines, count their tokens and estimate their cost roughly, and submit nothing")
	flags.StringVar(&o.webhook, "webhook", "", "an address that is told when the batch has ended")
	flags.BoolVar(&o.wait, "wait", false, "follow it until it has ended")
	return cmd
}

func (o *consignment) fill(cmd *cobra.Command, now time.Time) error {
	if cmd.Flags().Changed("id") && o.spec.ID == "" {
		return usagef("--id: is empty")
	}
	o.spec.Tenant = o.tenant
	o.spec.SetDefaults()
	if cmd.Flags().Changed("max-cost") {
		o.spec.MaxCost = &o.maxCost
	}
	if cmd.Flags().Changed("concurrency") && o.spec.Concurrency < 1 {
		return usagef("--concurrency: must be 1 at least")
	}
	if cmd.Flags().Changed("webhook") {
		o.spec.Webhook = &messages.Webhook{URL: o.webhook}
	}
	at := now.UTC().Add(o.expires)
	o.spec.ExpiresAt = &at
	if err := errors.Join(o.spec.BatchRef.Check(), o.spec.BatchSettings.Check(now)); err != nil {
		return usage(err)
	}
	if o.template == "" {
		return nil
	}
	data, err := document.Read(o.template, maxTask)
	if err != nil {
		return usage(err)
	}
	o.spec.Template, err = messages.ParseBatchTemplate(data)
	return usage(err)
}

func (c *commands) runBatch(cmd *cobra.Command, o *consignment, client *dispatcher.Client, in io.Reader, twice bool) error {
	bar := &bar{c: c, out: cmd.ErrOrStderr()}
	defer bar.clear()
	told := 0
	o.spec.Refused = func(e *messages.LineError) {
		if told++; told <= messages.MaxBatchErrors {
			bar.clear()
			_ = write(cmd.ErrOrStderr(), visible(e.Error())+"\n")
		}
	}
	if o.dry || twice {
		o.spec.Progress = func(n int) { bar.draw(fmt.Sprintf("checked %d lines", n)) }
		o.spec.Estimate = o.dry
		check, err := client.CheckBatch(cmd.Context(), o.spec, dispatcher.ReadLines(in))
		bar.clear()
		switch {
		case err != nil:
			return err
		case o.dry:
			return c.showCheck(cmd, o, check)
		case check.Invalid > 0 && !o.spec.SkipInvalid:
			return fmt.Errorf("%s of %d are wrong: nothing was submitted; --skip-invalid leaves them out", count(int64(check.Invalid), "line"), check.Lines+check.Invalid)
		}
		if file, ok := in.(io.Seeker); ok {
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return fmt.Errorf("read the file again: %w", err)
			}
		}
		o.spec.Refused = nil // told before
	}
	o.spec.Progress = func(n int) { bar.draw(fmt.Sprintf("submitted %d lines", n)) }
	b, err := client.SubmitBatch(cmd.Context(), o.spec, dispatcher.ReadLines(in))
	bar.clear()
	switch {
	case errors.Is(err, dispatcher.ErrBatchInvalid):
		return fmt.Errorf("batch %s: %s wrong: nothing was run; --skip-invalid leaves them out", b.ID, count(int64(b.Counts.Invalid), "line"))
	case err != nil:
		_ = write(cmd.ErrOrStderr(), fmt.Sprintf("nothing of batch %s runs unless `longshore batch status %s` says so: submit it again with --id %s\n", o.spec.ID, o.spec.ID, o.spec.ID))
		return err
	case o.wait:
		if err := c.submitted(cmd, &shared{tenant: o.tenant}, b); err != nil {
			return err
		}
		return c.follow(cmd, &o.shared, client, b.BatchRef)
	default:
		return c.submitted(cmd, &o.shared, b)
	}
}

func (c *commands) showCheck(cmd *cobra.Command, o *consignment, check *dispatcher.BatchCheck) error {
	var err error
	if o.output.json {
		err = c.writeJSON(cmd, check)
	} else {
		err = write(cmd.OutOrStdout(), fmt.Sprintf("%s right, %d wrong, about %s of input; nothing was submitted\n%s",
			count(int64(check.Lines), "line"), check.Invalid, tokens(check.Tokens), estimate(check)))
	}
	if err == nil && check.Invalid > 0 && !o.spec.SkipInvalid {
		err = fmt.Errorf("%s wrong", count(int64(check.Invalid), "line"))
	}
	return err
}

// estimate is what a batch would cost, on a line; empty when no line is right.
func estimate(check *dispatcher.BatchCheck) string {
	c := check.Cost
	switch {
	case c == nil:
		return ""
	case c.USD == nil:
		return "cost unknown: " + visible(c.Unknown) + "\n"
	case c.Unknown == "":
		return fmt.Sprintf("cost about %s, as %s cost\n", messages.Money(*c.USD), count(int64(c.Runs), "past run"))
	default:
		return fmt.Sprintf("cost about %s for %d of %d lines, as %s cost; of the others unknown: %s\n",
			messages.Money(*c.USD), c.Lines, check.Lines, count(int64(c.Runs), "past run"), visible(c.Unknown))
	}
}

// followEvery is how often a batch that is followed is asked for.
const followEvery = time.Second

// follow shows how a batch goes on, until it has ended.
func (c *commands) follow(cmd *cobra.Command, s *shared, client *dispatcher.Client, ref messages.BatchRef) error {
	bar := &bar{c: c, out: cmd.ErrOrStderr()}
	defer bar.clear()
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		b, err := client.Batch(cmd.Context(), ref)
		switch {
		case err != nil && interrupted(cmd.Context()):
			return detachedBatch(ref, err)
		case err != nil:
			return err
		}
		if b.Status.Ended() {
			bar.clear()
			if err := c.showBatch(cmd, s, b); err != nil {
				return err
			}
			if n := b.Counts.Total - b.Counts.Completed; n > 0 || b.Status != messages.BatchCompleted {
				return fmt.Errorf("batch %s is %s: %d of %d lines did not complete", b.ID, b.Status, n, b.Counts.Total)
			}
			return nil
		}
		bar.draw(c.progressOf(b))
		select {
		case <-ticker.C:
		case <-cmd.Context().Done():
			return detachedBatch(ref, cmd.Context().Err())
		}
	}
}

// detachedBatch says that a batch goes on without being followed.
func detachedBatch(ref messages.BatchRef, err error) *Interrupted {
	of := messages.Ref{Tenant: ref.Tenant, Run: ref.ID}
	return &Interrupted{
		text: fmt.Sprintf("Detached; batch %s is still running. Follow: %s --wait. Stop: %s.", ref.ID, command("batch status", of), command("batch cancel", of)),
		err:  err,
	}
}

// barWidth is the columns of the bar itself.
const barWidth = 20

// progressOf is a batch on one line.
func (*commands) progressOf(b *messages.Batch) string {
	n := &b.Counts
	text := fmt.Sprintf("%s %d of %d ended", cells(n.Ended(), n.Total), n.Ended(), n.Total)
	if n.Failed > 0 {
		text += fmt.Sprintf(", %d failed", n.Failed)
	}
	text += " · " + cost(b)
	if b.SecondsTo != nil {
		text += " · about " + left(*b.SecondsTo) + " left"
	}
	return text
}
