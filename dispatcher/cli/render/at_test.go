package render_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
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

// Commands write times with At and Clock, so that all are in the zone of the process: no command gives them a form of its own, but for those that
// are not about when something was.
func TestOneFormOfTimes(t *testing.T) {
	t.Parallel()
	own := []string{
		"dispatcher/cli/render/at.go",
		"dispatcher/cli/render/line.go",       // the time at which a line is written
		"dispatcher/cli/top/picture.go",       // now
		"dispatcher/cli/catalog/schedules.go", // in the zone of the schedule
		"deploy/command/prices.go",            // the date of a file
	}
	form := regexp.MustCompile(`\.Format\((time\.|")|\.(UTC|Local)\(\)\.(Format|String)\(`)
	root := os.DirFS("../../..")
	for _, dir := range []string{"dispatcher/cli", "deploy/command"} {
		err := fs.WalkDir(root, dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			data, err := fs.ReadFile(root, name)
			if found := form.Find(data); slices.Contains(own, name) != (found != nil) {
				t.Errorf("%s: a time has the form %q; own: %v", name, found, slices.Contains(own, name))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
