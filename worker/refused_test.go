package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/worker"
)

// A run whose events the stream refuses is tried as often as any, then let go with a dead letter: it does not come again.
func TestEventsThatAreRefused(t *testing.T) {
	h := open(t, 30*time.Second)
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for _, name := range bustest.EventStreams(t, h.nc) {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		tight := stream.CachedInfo().Config
		tight.MaxMsgSize = 10
		if _, err := js.UpdateStream(ctx, tight); err != nil {
			t.Fatal(err)
		}
	}
	w, _ := h.worker("w", script(t, hello), worker.Config{})
	run := h.submit(messages.Task{Input: messages.TextInput("hi")})
	letter := h.letter(ctx, js, run.TaskSubject(messages.PriorityNormal))
	if letter.Attempts == 0 || !strings.Contains(letter.Error.Message, "events could not be stored") {
		t.Errorf("dead letter: %+v", letter)
	}
	for held := true; held; {
		_, held, err = taskqueue.New(h.open(h.nc)).Queued(ctx, run)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("its ticket is not gone; %d slots are busy", w.Stats().Busy)
		}
	}
}
