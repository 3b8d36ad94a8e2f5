package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

// WatchAndReport shows a run from its first event to its end, fetches its whole result and shows that. The error is a
// *RunFailed, and the result is there too, when the run failed or was cancelled. When ctx ends the run continues.
//
// A run whose log is gone and whose events are kept ends with the shortened result of its last event, and a note.
func WatchAndReport(
	ctx context.Context, client *dispatcher.Client, run messages.Ref, reporter *Reporter,
) (*messages.AgentResult, error) {
	return watchAndReport(ctx, client, run, reporter, func(*messages.Event) error { return nil })
}

// watchAndReport is WatchAndReport with something to do after each event that is shown; its error ends the watch.
func watchAndReport(
	ctx context.Context, client *dispatcher.Client, run messages.Ref, reporter *Reporter, after func(*messages.Event) error,
) (*messages.AgentResult, error) {
	reporter.Begin(run.Run)
	if reporter.wantsDeltas() {
		defer ShowDeltas(ctx, client, run, reporter.Live)()
	}
	var shortened *messages.AgentResult
	watched := client.Watch(ctx, run)
	if reporter.options.Tree {
		watched = client.Runs().WatchTree(ctx, run)
	}
	for e, err := range watched {
		if err != nil {
			return nil, StoppedWatching(ctx, err, run)
		}
		reporter.Event(e)
		if err := after(&e); err != nil {
			return nil, StoppedWatching(ctx, err, run)
		}
		if e.Name() == messages.EventRunFinished && e.Subject == run.Run {
			shortened = ResultOf(&e)
		}
	}
	result, err := client.Result(ctx, run)
	switch {
	case errors.Is(err, dispatcher.ErrNotFound) && shortened != nil:
		reporter.Note(run.Run, "the run's log is gone: this is the shortened result of its last event")
		result = shortened
	case err != nil && render.WasInterrupted(ctx):
		return nil, render.Detached(run, err)
	case err != nil:
		return nil, fmt.Errorf("fetch the result: %w", render.Explain(err, run))
	}
	if err := reporter.Done(result); err != nil {
		return result, err
	}
	return result, render.Failed(result)
}

// StoppedWatching is the error of a watch that did not see the run's end.
func StoppedWatching(ctx context.Context, err error, run messages.Ref) error {
	switch {
	case ctx.Err() == nil:
		return render.Explain(err, run)
	case render.WasInterrupted(ctx):
		return render.Detached(run, err)
	}
	return render.Worded(fmt.Sprintf("stopped waiting; run %s is still running: see `%s`", run.Run, render.Command("status", run)), err)
}

// ResultOf is the result in run_finished; nil when it cannot be read.
func ResultOf(e *messages.Event) *messages.AgentResult {
	var d messages.RunFinished
	if json.Unmarshal(e.Data, &d) != nil || d.Result.ID == "" {
		return nil
	}
	return &d.Result
}
