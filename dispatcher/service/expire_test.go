package service_test

import (
	"errors"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
)

// An agent whose time is over goes by itself; others, and its history, stay.
func TestAgentsExpire(t *testing.T) {
	nc := start(t)
	defer serve(t, nc, service.Config{Sweep: time.Second})()
	c, err := dispatcher.New(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	for name, expires := range map[string]*time.Time{"writer": nil, "later": new(time.Now().Add(time.Hour)), "writer_draft": new(time.Now())} {
		d := messages.Definition{Name: name, Instructions: "Write.", Expires: expires}
		d.SetDefaults()
		if _, err := c.Agents().Apply(t.Context(), d, "ann", nil); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(30 * time.Second); ; { // each turn is a request
		at, err := c.Agents().At(t.Context(), "writer_draft", 0)
		if errors.Is(err, messages.ErrUnknownAgent) || err == nil && at.Agent == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is still there: %+v %v", at, err)
		}
	}
	for _, name := range []string{"writer", "later"} {
		if at, err := c.Agents().At(t.Context(), name, 0); err != nil || at.Agent == nil {
			t.Errorf("%s: %+v %v", name, at, err)
		}
	}
	history, err := c.Agents().History(t.Context(), "writer_draft")
	if err != nil || len(history) != 2 || !history[0].Deleted || history[0].By != "dispatcher" {
		t.Errorf("history: %+v %v", history, err)
	}
}
