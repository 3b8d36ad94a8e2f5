package messages_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// ratedStory is a run of two calls of a tool that may be called once in a minute: one is made, and the other, begun in the log and not made in
// its minute, waits for the next.
func ratedStory(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	s.add(startedWith(func(d *messages.Definition) {
		d.Policy = &messages.Policy{Rates: []messages.RateRule{{Name: "files", Tool: "read_*", PerMinute: new(1)}}}
	}), claimed("k1", "w1", 7), stepStarted(1))
	a, b := call("c1", "read_file", `{"path":"a.go"}`), call("c2", "read_file", `{"path":"b.go"}`)
	s.add(replied(1, "", a, b), &record.ToolStarted{Step: 1, Call: a}, &record.ToolStarted{Step: 1, Call: b})
	until := noon.Truncate(time.Minute).Add(time.Minute)
	park := s.add(returned(1, a, "package a", ""), &record.Parked{
		Reason: queue.ParkRate, Until: &until, Limit: "files", Question: "rule files of agent reviewer allows 1 call of read_* in a minute",
		Permits: []record.Permit{{Step: 1, Call: "c2", Rates: []string{"agent:reviewer:files/1m0s"}, From: until, To: until.Add(59 * time.Second)}},
		Unmade:  []string{"c2"},
	})
	s.add(&record.Expired{Park: park})
	s.add(&record.Claimed{Claim: "k2", Worker: "w2", Ticket: 50, Resumes: queue.ParkRate}, &record.ToolStarted{Step: 1, Call: b})
	s.add(returned(1, b, "package b", ""), stepEnded(1, messages.StepCompleted), stepStarted(2))
	s.add(replied(2, "Two packages."), stepEnded(2, messages.StepCompleted), finished(2, "Two packages.", nil))
	return s.entries
}
