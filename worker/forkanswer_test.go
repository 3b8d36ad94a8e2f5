package worker_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// A fork from where a call waited for a person asks again, and gets another decision.
func TestForkWithAnotherDecision(t *testing.T) {
	s := openSite(t, nil)
	s.add("first")
	run := s.begin("wreck it")
	first := s.asked(run)
	if _, err := s.client.Approvals().Approve(t.Context(), run, dispatcher.Decision{Call: first.Call}); err != nil {
		t.Fatal(err)
	}
	s.result(run)
	reply, err := s.client.Runs().Fork(t.Context(), run, control.ForkRequest{At: 1, Call: first.Call})
	if err != nil {
		t.Fatal(err)
	}
	fork := messages.Ref{Tenant: run.Tenant, Run: reply.ID}
	again := s.asked(fork)
	if again.Call != first.Call || again.Hash != first.Hash || again.Step != 1 {
		t.Errorf("it asks for %+v, want %+v", again, first)
	}
	if _, err := s.client.Approvals().Deny(t.Context(), fork, dispatcher.Decision{Call: again.Call, Reason: "not the shed"}); err != nil {
		t.Fatal(err)
	}
	r := s.result(fork)
	if r.Status != messages.StatusCompleted || s.wreck.calls.Load() != 1 || len(r.Actions) == 0 || r.Actions[0].Code != messages.CodeApprovalDenied {
		t.Errorf("%+v after %d calls", r, s.wreck.calls.Load())
	}
	for at, call := range map[int]string{1: "unknown", 2: first.Call} {
		if _, err := s.client.Runs().Fork(t.Context(), run, control.ForkRequest{At: at, Call: call}); err == nil || !strings.Contains(err.Error(), "has waited for a person") {
			t.Errorf("a call that did not wait: %v", err)
		}
	}
}

// A fork from a question gets another answer.
func TestForkWithAnotherAnswer(t *testing.T) {
	s := openSite(t, nil)
	s.add("first")
	run := s.begin("ask me")
	answer := func(of messages.Ref, text string) *messages.AgentResult {
		s.waitsFor(of, "answer")
		if _, err := s.client.Approvals().Answer(t.Context(), of, control.AnswerRequest{Text: text}); err != nil {
			t.Fatal(err)
		}
		return s.result(of)
	}
	r := answer(run, "blue")
	reply, err := s.client.Runs().Fork(t.Context(), run, control.ForkRequest{At: 1, Call: r.Actions[0].CallID})
	if err != nil {
		t.Fatal(err)
	}
	other := answer(messages.Ref{Tenant: run.Tenant, Run: reply.ID}, "green")
	if r.Actions[0].Output != "blue" || other.Actions[0].Output != "green" || other.Status != messages.StatusCompleted {
		t.Errorf("%+v and %+v", r, other)
	}
}
