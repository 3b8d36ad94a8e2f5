package deadletters_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
)

// One letter is stored for each run, and for each message that names none. A task that is not JSON arrives as it was.
func TestDeadLetter(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	letter := messages.Dead{Subject: "tasks.normal.acme.run-1", Task: []byte("not\xffJSON"), Attempts: 5, Error: messages.RunError{Code: messages.CodePoison}}
	for range 2 {
		if err := taskqueue.New(b).DeadLetter(bustest.Context(t), bustest.Run(), "not.an.agent", letter); err != nil {
			t.Fatal(err)
		}
		if err := deadletters.New(b).PutRaw(bustest.Context(t), "tasks.normal.*.>", letter); err != nil {
			t.Fatal(err)
		}
	}
	if n := bustest.StreamLength(t, nc, bus.StreamDead); n != 2 {
		t.Errorf("got %d letters, want 2", n)
	}
	s, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bus.StreamDead)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(bustest.Context(t), "dead.acme._.run-1")
	if err != nil {
		t.Fatal(err)
	}
	var got messages.Dead
	if err := json.Unmarshal(m.Data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(letter, got); diff != "" {
		t.Error(diff)
	}
}
