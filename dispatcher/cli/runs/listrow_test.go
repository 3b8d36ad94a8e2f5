package runs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

func TestRowOfAList(t *testing.T) {
	now := time.Date(2026, 1, 2, 13, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { u := now.Add(d); return &u }
	for name, tc := range map[string]struct {
		run  control.RunSummary
		want []string
	}{
		"ended": {
			control.RunSummary{
				ID: "x", Agent: "a", Status: messages.StatusFailed, Steps: 4, Started: at(-time.Hour), Finished: at(-time.Hour + 5*time.Second),
				Input: strings.Repeat("long ", 99),
			},
			[]string{"x", "a", "failed", "4", "1h00m", "5.0s", strings.Repeat("long ", 11) + "long…"},
		},
		"began before": {
			control.RunSummary{ID: "x", Status: messages.StatusRunning, Steps: 2},
			[]string{"x", "?", "running", "2", "?", "?", ""},
		},
		"waits": {
			control.RunSummary{ID: "x", Agent: "a", Status: messages.StatusWaiting, Waits: queue.ParkWorker},
			[]string{"x", "a", "waiting: worker", "0", "?", "?", ""},
		},
		"waits for its model": {
			control.RunSummary{ID: "x", Agent: "a", Status: messages.StatusWaiting, Waits: queue.ParkModel, Code: messages.CodeModelUnreachable},
			[]string{"x", "a", "waiting: model_unreachable", "0", "?", "?", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, row(&tc.run, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if note := listNote(3, 3, 7, &filter{}); !strings.HasPrefix(note, "the newest 3 of more than 10000 runs") {
		t.Errorf("note: %q", note)
	}
}
