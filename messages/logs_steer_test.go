package messages_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// steered is a run that is told something while the model is called, and something else while it waits: the first
// answer is not the last word, for the model had not read it.
func steered(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t, turns: true}
	s.add(startedWith(func(*messages.Definition) {}), claimed("k1", "w1", 7), stepStarted(1))
	s.add(&record.Steered{ID: "x1", By: "ann", Message: "Skip b.go."})
	a := call("c1", "send_mail", `{"path":"a.go"}`)
	s.add(replied(1, "", a))
	park := s.add(&record.Parked{Reason: queue.ParkAnswer, Call: "c1"})
	s.add(&record.Steered{ID: "x2", Message: "Be brief."})
	s.add(&record.Answered{ID: "x3", Park: park, By: "ann", Content: messages.TextContent("yes")})
	s.add(&record.Claimed{Claim: "k2", Worker: "w2", Ticket: 20, Delivery: 1, Resumes: queue.ParkAnswer})
	s.add(returned(1, a, "yes", ""), stepEnded(1, messages.StepCompleted), stepStarted(2))
	s.add(&record.Steered{ID: "x4", By: "ann", Message: "In French."})
	s.add(replied(2, "Done."), stepEnded(2, messages.StepCompleted), stepStarted(3))
	s.add(replied(3, "Fini."), stepEnded(3, messages.StepCompleted), finished(3, "Fini.", nil))
	return s.entries
}

func TestSteerRequestRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		req   control.SteerRequest
		field string
	}{
		"nothing said": {control.SteerRequest{ID: "a"}, "message"},
		"too long":     {control.SteerRequest{ID: "a", Message: strings.Repeat("a", control.MaxSteer+1)}, "message"},
		"not UTF-8":    {control.SteerRequest{ID: "a", Message: "\xff"}, "message"},
		"control":      {control.SteerRequest{ID: "a", Message: "m", Control: "a.b"}, "control"},
		"by":           {control.SteerRequest{ID: "a", Message: "m", By: strings.Repeat("a", 2000)}, "by"},
	} {
		var field *messages.FieldError
		if err := tt.req.Validate(); !errors.As(err, &field) || field.Field != tt.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}
