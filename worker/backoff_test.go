package worker

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/worker/fetch"
	"github.com/longshore-run/longshore/worker/runner"
)

// A task whose worker failed it comes again later and later, and at once when the worker only stops.
func TestFailuresBackOff(t *testing.T) {
	t.Parallel()
	failed := errors.New("redis: timeout")
	for name, tc := range map[string]struct {
		err       error
		delivered int
		want      time.Duration
	}{
		"the worker stops":              {fmt.Errorf("work: %w", runner.ErrShutdown), 9, 0},
		"another ticket of it":          {runner.ErrBusy, 9, time.Second},
		"quarantine is full":            {fetch.ErrQuarantineFull, 9, time.Second},
		"the first failure":             {failed, 1, time.Second},
		"the second failure":            {failed, 2, 2 * time.Second},
		"the tenth failure":             {failed, 10, 10 * time.Second},
		"a failure that will not pass":  {failed, 1000, 30 * time.Second},
		"a hand-over without a failure": {nil, 3, 3 * time.Second},
	} {
		if got := nakDelay(tc.err, tc.delivered); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
