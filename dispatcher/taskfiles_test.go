package dispatcher_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
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
	nightly := control.Schedule{Name: "nightly", Cron: "0 3 * * *", Task: messages.Task{Input: messages.TextInput("x"), Manifest: missing}}
	const unknown = "schedule.task.manifest: no list of files with this hash is stored"
	if _, err := y.client.Schedules().Put(t.Context(), nightly, "ann", nil); err == nil || !strings.Contains(err.Error(), unknown) {
		t.Errorf("a schedule: %v", err)
	}
}

// Lines of a batch hold what they name from when the batch is accepted, also those whose turn is long after.
func TestBatchHoldsWhatItsLinesName(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	stored := files.New(y.bus)
	var text strings.Builder
	const lines = 3
	for i := range lines {
		content := fmt.Sprint("content ", i)
		hash := manifest.HashOf([]byte(content))
		if err := stored.Put(t.Context(), "default", hash, int64(len(content)), strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, `{"custom_id":"a%d","input":"go","files":[{"path":"a","hash":"%s","size":%d}]}`+"\n", i, hash, len(content))
	}
	text.WriteString(`{"custom_id":"gone","input":"go","manifest":"` + strings.Repeat("0a", 32) + `"}` + "\n")
	of := spec("b")
	of.Concurrency = 1
	if _, err := y.client.Batches().Submit(t.Context(), of, read(text.String())); err != nil {
		t.Fatal(err)
	}
	head := y.until(of.BatchRef, func(b *messages.Batch) bool { return b.Counts.Submitted > 0 })
	if head.Counts.Submitted != 1 {
		t.Fatalf("%d lines were submitted, and no worker runs", head.Counts.Submitted)
	}
	for i := range lines {
		run := messages.Ref{Tenant: "default", Run: of.TaskID(fmt.Sprint("a", i))}
		if refs, err := stored.Referred(t.Context(), run); err != nil || len(refs) != 1 {
			t.Errorf("line %d refers to %v, %v", i, refs, err)
		}
	}
	y.worker("")
	y.ended(of.BatchRef)
	if diff := cmp.Diff([]string{"a0 completed", "a1 completed", "a2 completed", "gone failed"}, y.results(of.BatchRef, dispatcher.ByInput)); diff != "" {
		t.Error(diff)
	}
}

// A schedule may name contents that are stored, and each of its runs has them.
func TestScheduleNamesContents(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	stored, hash := files.New(y.bus), manifest.HashOf([]byte("content"))
	nightly := control.Schedule{Name: "nightly", Cron: "0 3 * * *", Task: messages.Task{
		Input: messages.TextInput("x"), Files: []messages.TaskFile{{Path: "a", Hash: hash, Size: 7}},
	}}
	const unknown = "schedule.task.files[0].hash: a: no content with this hash is stored"
	if _, err := y.client.Schedules().Put(t.Context(), nightly, "ann", nil); err == nil || !strings.Contains(err.Error(), unknown) {
		t.Errorf("before it is stored: %v", err)
	}
	if err := stored.Put(t.Context(), "default", hash, 7, strings.NewReader("content")); err != nil {
		t.Fatal(err)
	}
	if _, err := y.client.Schedules().Put(t.Context(), nightly, "ann", nil); err != nil {
		t.Fatal(err)
	}
	run, err := y.client.Schedules().Run(t.Context(), control.ScheduleRef{Tenant: "default", Name: "nightly"})
	if err != nil {
		t.Fatal(err)
	}
	if refs, err := stored.Referred(t.Context(), run); err != nil || len(refs) != 1 {
		t.Errorf("the run refers to %v, %v", refs, err)
	}
}
