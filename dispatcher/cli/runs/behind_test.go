package runs

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/control"
)

// An answer says how many events it lacks and how old it is, and nothing when it lacks none.
func TestBehindNote(t *testing.T) {
	t.Parallel()
	now := time.Now().In(time.FixedZone("", 2*60*60))
	if note := behindNote(control.IndexLag{}, now); note != "" {
		t.Errorf("of an answer that knows everything: %q", note)
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	note := behindNote(control.IndexLag{Behind: 12, AsOf: &at}, now)
	if !strings.Contains(note, "12 events") || !strings.Contains(note, "as of 2030-01-02T05:04:05+02:00") {
		t.Errorf("got %q", note)
	}
	if note = behindNote(control.IndexLag{Behind: 12}, now); !strings.Contains(note, "12 events") || strings.Contains(note, "as of") {
		t.Errorf("of an index that has nothing yet: %q", note)
	}
}
