package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// WatchAndReport shows a run from its first event to its end, fetches its whole result and shows that. The error is a
// *RunFailed, and the result is there too, when the run failed or was cancelled. When ctx ends the run goes on.
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
		defer showDeltas(ctx, client, run, reporter.Live)()
	}
	var shortened *messages.AgentResult
	for e, err := range client.Watch(ctx, run) {
		if err != nil {
			return nil, stoppedWatching(ctx, err, run)
		}
		reporter.Event(e)
		if err := after(&e); err != nil {
			return nil, stoppedWatching(ctx, err, run)
		}
		if e.Name() == messages.EventRunFinished {
			shortened = resultOf(&e)
		}
	}
	result, err := client.Result(ctx, run)
	switch {
	case errors.Is(err, dispatcher.ErrNotFound) && shortened != nil:
		reporter.Note(run.Run, "the run's log is gone: this is the shortened result of its last event")
		result = shortened
	case err != nil && interrupted(ctx):
		return nil, detached(run, err)
	case err != nil:
		return nil, fmt.Errorf("fetch the result: %w", explain(err, run))
	}
	if err := reporter.Done(result); err != nil {
		return result, err
	}
	return result, failed(result)
}

// stoppedWatching is the error of a watch that did not see the run's end.
func stoppedWatching(ctx context.Context, err error, run messages.Ref) error {
	switch {
	case ctx.Err() == nil:
		return explain(err, run)
	case interrupted(ctx):
		return detached(run, err)
	}
	return &lineError{fmt.Sprintf("stopped waiting for run %s, which does not stop it: see `%s`", run.Run, command("status", run)), err}
}

// resultOf is the result in run_finished; nil when it cannot be read.
func resultOf(e *messages.Event) *messages.AgentResult {
	var d messages.RunFinished
	if json.Unmarshal(e.Data, &d) != nil || d.Result.ID == "" {
		return nil
	}
	return &d.Result
}
