package dispatcher_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// What a task names must be stored when it is queued: at a submit of a client, and when the turn of a line comes. A line that fails so
// holds up no other.
func TestNamedFilesMustBeStored(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	missing := strings.Repeat("0a", 32)
	_, err := y.client.Submit(t.Context(), messages.Task{Input: messages.TextInput("x"), Files: []messages.TaskFile{{Path: "a", Hash: missing, Size: 1}}})
	const want = "files[0].hash: a: no content with this hash is stored"
	if p, ok := errors.AsType[*messages.FieldError](err); !ok || !strings.HasPrefix(p.Error(), want) {
		t.Errorf("a submit: %v", err)
	}
	text := `{"custom_id":"gone","input":"go","manifest":"` + missing + `"}` + "\n" + `{"custom_id":"here","input":"go"}`
	if _, err := y.client.Batches().Submit(t.Context(), spec("b"), read(text)); err != nil {
		t.Fatal(err)
	}
	y.worker("")
	y.ended(dispatcher.BatchOf("b"))
	if diff := cmp.Diff([]string{"gone failed", "here completed"}, y.results(dispatcher.BatchOf("b"), dispatcher.ByInput)); diff != "" {
		t.Error(diff)
	}
	gone := messages.Ref{Tenant: "default", Run: dispatcher.BatchOf("b").TaskID("gone")}
	if st, err := y.client.Status(t.Context(), gone); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("the line became a run: %+v, %v", st, err)
	}
	nightly := control.Schedule{Name: "nightly", Tenant: "default", Cron: "0 3 * * *", Task: messages.Task{Input: messages.TextInput("x"), Manifest: missing}}
	nightly.SetDefaults()
	if err := nightly.Validate(); err == nil || err.Error() != "task.files: a schedule keeps no uploads: give text or data" {
		t.Errorf("a schedule: %v", err)
	}
}
