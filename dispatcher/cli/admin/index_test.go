package admin

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/control"
)

func TestRebuildProgress(t *testing.T) {
	t.Parallel()
	for since, tc := range map[time.Duration]struct {
		s    control.IndexStatus
		want string
	}{
		0:                {control.IndexStatus{Last: 1000, Behind: 1000}, "[--------------------] 0 of 1000 events"},
		2 * time.Second:  {control.IndexStatus{Last: 1000, Behind: 1000}, "[--------------------] 0 of 1000 events"},
		10 * time.Second: {control.IndexStatus{Position: 250, Last: 1000, Behind: 750}, "[#####---------------] 250 of 1000 events, 25 a second, about 30s to go"},
	} {
		if got := rebuildProgress(&tc.s, since); got != tc.want {
			t.Errorf("after %v: %q, want %q", since, got, tc.want)
		}
	}
}
