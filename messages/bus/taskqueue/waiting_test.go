package taskqueue_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
)

func TestTasksOf(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	publish := func(subject string) {
		t.Helper()
		_, run, _ := messages.ParseTaskSubject(subject)
		if _, err := nc.Request(bustest.QueueAt(b, run, subject), []byte("{}"), 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := taskqueue.New(b).TasksOf(t.Context(), "acme"); n != 0 || err != nil {
		t.Errorf("got %d, %v of an empty queue", n, err)
	}
	for _, subject := range []string{
		"tasks.high.acme.a", "tasks.normal.acme.b", "tasks.low.acme.c", "tasks.low.acme.d", // its own
		"tasks.wake.acme.e", "tasks.normal.acm.f", "tasks.normal.acme2.g", // a wake-up and others'
	} {
		publish(subject)
	}
	if n, err := taskqueue.New(b).TasksOf(t.Context(), "acme"); n != 4 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := taskqueue.New(b).TasksOf(t.Context(), "*"); err == nil {
		t.Error("a tenant that is a filter is counted")
	}
}
