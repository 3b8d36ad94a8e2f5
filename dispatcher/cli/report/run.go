package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

// maxAtOnce bounds how many runs RunTasks watches at the same time.
const maxAtOnce = 64

// RunTasks submits tasks, shows their steps on steps while they are worked, and of a single task on a terminal the
// replies while they are written, and writes each result, as soon as it is
// there, to results: its text, or the AgentResult as a line of JSON. The error is a *RunFailed of the first run that
// did not complete, once all have ended. When ctx ends, what was submitted continues without being watched: an *Interrupted.
// A run that waits for a person is asked about by Options.Ask, or is left with a *NeedsPerson.
func RunTasks(
	ctx context.Context, client *dispatcher.Client, tasks []messages.Task, steps, results io.Writer, options Options, asJSON bool,
) error {
	options.Out, options.Deltas = results, true
	if asJSON {
		options.Out = io.Discard
	}
	options.Names = map[string]string{}
	for i := range tasks {
		t := &tasks[i]
		name := t.ID
		if name == "" {
			name, t.ID = fmt.Sprintf("task %d", i+1), messages.NewID(time.Now())
		}
		options.Names[t.ID] = name
	}
	reporter := NewReporter(steps, options)
	defer reporter.Close()
	errs := make([]error, len(tasks))
	places := make(chan struct{}, maxAtOnce)
	var printing sync.Mutex
	var wg sync.WaitGroup
	for i, t := range tasks {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			result, err := runTask(ctx, client, t, reporter)
			if errs[i] = err; result == nil || !asJSON {
				return
			}
			printing.Lock()
			defer printing.Unlock()
			if err := json.NewEncoder(results).Encode(result); err != nil {
				errs[i] = fmt.Errorf("write result: %w", err)
			}
		})
	}
	wg.Wait()
	if d := render.DetachedAll(errs); d != nil && render.WasInterrupted(ctx) {
		if options.Ephemeral {
			return render.GivenUp("the run", d)
		}
		return d
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func runTask(ctx context.Context, client *dispatcher.Client, t messages.Task, r *Reporter) (*messages.AgentResult, error) {
	t.By = cmp.Or(t.By, r.options.User)
	id, err := client.Submit(ctx, t)
	run := messages.Ref{Tenant: t.Tenant, Run: t.ID}
	switch {
	case err != nil && render.WasInterrupted(ctx):
		return nil, &render.Interrupted{Text: fmt.Sprintf("Interrupted before it was known whether run %s is stored: see `%s`.", run.Run, render.Command("status", run)), Err: err, Run: run}
	case err != nil:
		return nil, render.Explain(err, run)
	}
	run.Run = id
	r.link(run)
	return watchAndReport(ctx, client, run, r, func(e *messages.Event) error {
		return r.options.Ask.attend(ctx, client, run, e, r, r.options.Advice)
	})
}
