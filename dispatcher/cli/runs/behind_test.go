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
	if note := behindNote(control.IndexLag{}); note != "" {
		t.Errorf("of an answer that knows everything: %q", note)
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.Local)
	note := behindNote(control.IndexLag{Behind: 12, AsOf: &at})
	if !strings.Contains(note, "12 events") || !strings.Contains(note, "2030-01-02 03:04:05") {
		t.Errorf("got %q", note)
	}
	if note = behindNote(control.IndexLag{Behind: 12}); !strings.Contains(note, "12 events") || strings.Contains(note, "as of") {
		t.Errorf("of an index that has nothing yet: %q", note)
	}
}
