package stage

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
)

// retainedAtOnce is how many runs are stored before the server is asked whether it has them: their events are fewer than what a stream takes
// before it refuses more.
const retainedAtOnce = 500

// Subjects are those that a run of the workload leaves in EVENTS, without its tenant and id; bundled, as workers with LONGSHORE_EVENT_BUNDLES leave them.
func Subjects(bundled bool) []string {
	all := []string{
		messages.EventRunQueued, messages.EventRunStarted, messages.EventStepStart, messages.EventMessageEnd, messages.EventToolExecutionStart,
		messages.EventToolExecutionEnd, messages.EventStepEnd, messages.EventTurnEnd, messages.EventRunFinished,
	}
	if !bundled {
		return all
	}
	return []string{all[0], all[1], messages.NameBundle, all[len(all)-1]}
}

// Retain stores messages with the subjects of so many runs that have ended, without a worker. Their bodies are short: what a server has in memory
// of messages that nothing reads does not depend on them.
func (s *Stage) Retain(ctx context.Context, runs int) error {
	js, err := jetstream.New(s.Conn)
	if err != nil {
		return fmt.Errorf("store runs: %w", err)
	}
	names := Subjects(s.Bundled)
	for done := 0; done < runs; {
		n := min(retainedAtOnce, runs-done)
		var run messages.Ref
		for range n {
			run = messages.Ref{Tenant: messages.DefaultTenant, Run: messages.NewID(time.Now())}
			for _, name := range names {
				if err := s.Conn.Publish(run.EventSubject(name), []byte("{}")); err != nil {
					return fmt.Errorf("store an event: %w", err)
				}
			}
			if err := s.Conn.Publish(run.LogSubject(), []byte("{}")); err != nil {
				return fmt.Errorf("store an entry: %w", err)
			}
		}
		for _, subject := range []string{run.EventSubject(names[len(names)-1]), run.LogSubject()} { // the server takes them in order
			if _, err := js.Publish(ctx, subject, []byte("{}")); err != nil {
				return fmt.Errorf("store runs: %w", err)
			}
		}
		done += n
	}
	return nil
}
