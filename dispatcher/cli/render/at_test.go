package render_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// The times in the sentence of a dispatcher are shown in the zone of the process, and nothing else of it is changed.
func TestTimesOfWhyAreLocal(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 2, 23, 30, 0, 5e8, time.UTC)
	until := since.Add(time.Hour)
	now := since.In(time.FixedZone("", 2*60*60))
	y := &control.Why{
		Text:  "It waits since 2026-01-02T23:30:00Z, until 2026-01-03T00:30:00Z at most, and was paused at 2026-01-01T00:00:00Z because: 2025-01-01T00:00:00Z",
		Since: since, Until: &until,
		Paused: &control.PausedThing{Pause: queue.Pause{At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}},
	}
	const want = "It waits since 2026-01-03T01:30:00+02:00, until 2026-01-03T02:30:00+02:00 at most, and was paused at 2026-01-01T02:00:00+02:00 because: 2025-01-01T00:00:00Z"
	if got := render.Why(y, now); got != want {
		t.Errorf("got %s", got)
	}
	if got := render.Why(y, now.UTC()); got != y.Text {
		t.Errorf("in UTC: %s", got)
	}
}
