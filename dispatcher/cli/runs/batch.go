package runs

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
)

// batches are the commands about batches.
type batches struct{ *conn.Caller }

// batch is the command with all that is done with batches.
func (c batches) batch() *cobra.Command {
	cmd := &cobra.Command{
		Use: "batch", Short: "Submit many tasks at once, follow them, fetch their results",
		Long: "Submit many tasks at once, follow them, and fetch their results. A batch is a file with one task per line, as JSON:\n" +
			"{\"custom_id\": \"…\", \"input\": \"…\"} and any other field of a task. No task runs before the last line has been read.",
	}
	cmd.AddCommand(c.batchSubmit(), c.batchStatus(), c.batchList(), c.batchResults(), c.batchCancel(), c.batchRetry())
	return cmd
}

// batchOf is the batch of an id; an invalid one is a UsageError.
func batchOf(s *conn.Shared, id string) (messages.BatchRef, error) {
	ref := messages.BatchRef{Tenant: s.Tenant, ID: id}
	return ref, render.Misuse(ref.Check())
}

func oneBatch(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return render.Usagef("needs the id of one batch, got %d arguments", len(args))
	}
	return nil
}

// withBatch is a command about the batch of its argument.
func (c batches) withBatch(cmd *cobra.Command, s *conn.Shared, do func(*cobra.Command, messages.BatchRef, *dispatcher.Client) error) *cobra.Command {
	cmd.Args = oneBatch
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := batchOf(s, args[0])
		if err != nil {
			return err
		}
		return c.With(cmd.Context(), func(client *dispatcher.Client) error {
			return explainBatch(do(cmd, ref, client), ref)
		})
	}
	s.Register(cmd)
	return cmd
}

// explainBatch is an error of the client about a batch, on one line that says what to do next.
func explainBatch(err error, ref messages.BatchRef) error {
	say := func(format string, args ...any) error {
		return render.Worded(render.Visible(fmt.Sprintf(format, args...)), err)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, dispatcher.ErrNoBatch):
		return say("no batch %s of tenant %s: see `longshore batch list`", ref.ID, ref.Tenant)
	case errors.Is(err, dispatcher.ErrNotEnded):
		return say("batch %s has not ended: wait for it with `longshore batch status %s --wait`", ref.ID, ref.ID)
	case errors.Is(err, dispatcher.ErrEnded):
		return say("batch %s has already ended: see `longshore batch status %s`", ref.ID, ref.ID)
	case errors.Is(err, dispatcher.ErrUnavailable):
		return render.Explain(err, messages.Ref{Tenant: ref.Tenant, Run: ref.ID})
	default:
		return render.OneLine(err)
	}
}

func (c batches) batchStatus() *cobra.Command {
	var s conn.Shared
	var wait bool
	cmd := c.withBatch(&cobra.Command{
		Use: "status ID", Short: "Show the state of a batch",
		Long: "Show how many lines of a batch have ended and how, their cost, and how long the rest may take.",
	}, &s, func(cmd *cobra.Command, ref messages.BatchRef, client *dispatcher.Client) error {
		if wait {
			return c.follow(cmd, &s, client, ref)
		}
		b, err := client.Batches().Get(cmd.Context(), ref)
		if err != nil {
			return err
		}
		return c.showBatch(cmd, &s, b)
	})
	cmd.Flags().BoolVar(&wait, "wait", false, "follow it until it has ended; the exit code is 1 unless all lines completed")
	return cmd
}

func (c batches) showBatch(cmd *cobra.Command, s *conn.Shared, b *messages.Batch) error {
	if s.Output.JSON {
		return c.WriteJSON(cmd, b)
	}
	return writeBatch(cmd.OutOrStdout(), b, c.Options.Now())
}

func writeBatch(w io.Writer, b *messages.Batch, now time.Time) error {
	status := string(b.Status)
	if b.Waits != "" {
		status += " (waits: " + b.Waits + ")"
	}
	if b.Reason != "" {
		status += " (" + b.Reason + ")"
	}
	n := &b.Counts
	rows := [][2]string{
		{"id", b.ID},
		{"tenant", b.Tenant},
		{"name", b.Name},
		{"status", status},
		{"lines", fmt.Sprintf("%d of %d ended: %d completed, %d failed, %d cancelled, %d expired", n.Ended(), n.Total, n.Completed, n.Failed, n.Cancelled, n.Expired)},
		{"wrong lines", zero(n.Invalid)},
		{"at once", zero(b.Concurrency)},
		{"cost", cost(b)},
		{"used", render.Tokens(b.Usage.Total)},
		{"created", fmt.Sprintf("%s (%s ago)", render.At(b.Created, now), render.Span(now.Sub(b.Created)))},
	}
	if b.SecondsTo != nil {
		rows = append(rows, [2]string{"time left", "about " + left(*b.SecondsTo)})
	}
	table := render.NewTable(w)
	for _, row := range rows {
		if row[1] == "" {
			continue
		}
		table.Row(row[:]...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range b.Errors {
		if err := render.Write(w, render.Visible(b.Errors[i].Error())+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func zero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// maxLeft is more than any batch may take.
const maxLeft = 366 * 24 * 3600.0

func left(seconds float64) string {
	return render.Span(time.Duration(min(seconds, maxLeft) * float64(time.Second)))
}

// cost says what is known, and that it is not all.
func cost(b *messages.Batch) string {
	text := messages.Money(b.Cost)
	if b.MaxCost != nil {
		text += " of " + messages.Money(*b.MaxCost)
	}
	if b.Unpriced > 0 {
		text += fmt.Sprintf(", and %s of unknown cost", render.Count(int64(b.Unpriced), "run"))
	}
	return text
}

func (c batches) batchList() *cobra.Command {
	var s conn.Shared
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List the batches, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.Check("_"); err != nil { // for the tenant
				return err
			}
			if limit < 1 || limit > 200 {
				return render.Usagef("--limit: must be 1 to 200")
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error { return c.listBatches(cmd, &s, limit, client) })
		},
	}
	s.Register(cmd)
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number, up to 200")
	return cmd
}

func (c batches) listBatches(cmd *cobra.Command, s *conn.Shared, limit int, client *dispatcher.Client) error {
	list, err := client.Batches().List(cmd.Context(), s.Tenant, limit)
	if err != nil {
		return explainBatch(err, messages.BatchRef{Tenant: s.Tenant})
	}
	if s.Output.JSON {
		for i := range list.Batches {
			if err := c.WriteJSON(cmd, &list.Batches[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list.Batches) == 0 {
		return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("no batches of tenant %s\n", s.Tenant))
	}
	table := render.NewTable(cmd.OutOrStdout())
	table.Row("ID", "STATUS", "ENDED", "LINES", "FAILED", "COST", "AGE", "NAME")
	for i := range list.Batches {
		b := &list.Batches[i]
		table.Row(b.ID, string(b.Status), strconv.Itoa(b.Counts.Ended()), strconv.Itoa(b.Counts.Total), strconv.Itoa(b.Counts.Failed),
			cost(b), render.Span(c.Options.Now().Sub(b.Created)), render.Truncate(render.Visible(b.Name), render.ListedInput))
	}
	return table.Flush()
}

func (c batches) batchResults() *cobra.Command {
	var s conn.Shared
	var order string
	var statuses []string
	cmd := c.withBatch(&cobra.Command{
		Use: "results ID", Short: "Write how the lines of a batch ended, as lines of JSON",
		Long: "Write a line of JSON for each line that has ended: custom_id, line, task, status, and its result or error.",
	}, &s, func(cmd *cobra.Command, ref messages.BatchRef, client *dispatcher.Client) error {
		o := dispatcher.BatchOrder(order)
		if o != dispatcher.ByInput && o != dispatcher.ByCompletion {
			return render.Usagef("--order: must be input or completion")
		}
		if _, err := client.Batches().Get(cmd.Context(), ref); err != nil {
			return err
		}
		wanted := map[string]bool{}
		for _, st := range statuses {
			wanted[st] = true
		}
		for out, err := range client.Batches().Results(cmd.Context(), ref, o) {
			if err != nil {
				return err
			}
			if len(wanted) > 0 && !wanted[string(out.Status)] {
				continue
			}
			if err := c.WriteJSON(cmd, out); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().StringVar(&order, "order", string(dispatcher.ByInput), "input or completion")
	cmd.Flags().StringSliceVar(&statuses, "status", nil, "only these: completed, failed, cancelled, expired; may be repeated")
	return cmd
}

func (c batches) batchCancel() *cobra.Command {
	var s conn.Shared
	var reason string
	cmd := c.withBatch(&cobra.Command{
		Use: "cancel ID", Short: "Cancel a batch",
		Long: "Cancel a batch: no more of its lines are submitted, and its runs are asked to stop. Its results so far are kept.",
	}, &s, func(cmd *cobra.Command, ref messages.BatchRef, client *dispatcher.Client) error {
		b, err := client.Batches().Cancel(cmd.Context(), ref, reason)
		if err != nil {
			return err
		}
		return c.showBatch(cmd, &s, b)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why; watchers see it")
	return cmd
}

func (c batches) batchRetry() *cobra.Command {
	var s conn.Shared
	var failed bool
	var id string
	cmd := c.withBatch(&cobra.Command{
		Use: "retry ID", Short: "Submit the lines that did not complete as a new batch",
		Long: "Submit the lines of a batch that failed, were cancelled or have expired as a new batch, with the same custom_ids.",
	}, &s, func(cmd *cobra.Command, ref messages.BatchRef, client *dispatcher.Client) error {
		spec := dispatcher.BatchSpec{BatchRef: messages.BatchRef{Tenant: s.Tenant, ID: id}}
		spec.SetDefaults()
		if err := spec.BatchRef.Check(); err != nil {
			return render.Misuse(err)
		}
		b, err := client.Batches().Retry(cmd.Context(), ref, spec, failed)
		if err != nil {
			return err
		}
		return c.submitted(cmd, &s, b)
	})
	cmd.Flags().BoolVar(&failed, "failed", false, "only lines that failed")
	cmd.Flags().StringVar(&id, "id", "", "id of the new batch; a new one by default")
	return cmd
}

// submitted says which batch there is now.
func (c batches) submitted(cmd *cobra.Command, s *conn.Shared, b *messages.Batch) error {
	if s.Output.JSON {
		return c.WriteJSON(cmd, b)
	}
	if err := render.Write(cmd.OutOrStdout(), b.ID+"\n"); err != nil {
		return err
	}
	return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("%s submitted: follow them with `longshore batch status %s --wait`\n", render.Count(int64(b.Counts.Total), "line"), b.ID))
}

// openBatch opens the file of a batch; twice tells that it can be read twice.
func openBatch(cmd *cobra.Command, name string) (in io.Reader, twice bool, done func(), err error) {
	if name == render.FromInput {
		return cmd.InOrStdin(), false, func() {}, nil
	}
	f, err := document.Open(name)
	if err != nil {
		return nil, false, nil, render.FileError(err)
	}
	return f, true, func() { _ = f.Close() }, nil
}
