package scripted_test

import (
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// A script is about one run: what earlier runs of a session said plays none of its turns.
func TestSessionPlaysItsOwnTurns(t *testing.T) {
	s, err := scripted.Parse([]byte("scenes:\n  - match: two\n    turns: [{text: second}]\n  - match: one\n    turns: [{text: first}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	msg := func(role messages.Role, text string) messages.Message {
		return messages.Message{Role: role, Content: messages.TextContent(text)}
	}
	req := model.Request{Recalled: 2, Messages: []messages.Message{
		msg(messages.RoleSystem, "s"), msg(messages.RoleUser, "one"), msg(messages.RoleAssistant, "first"), msg(messages.RoleUser, "two"),
	}}
	for d, err := range scripted.New(s).Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Reply != nil && d.Reply.Message.Text() != "second" {
			t.Errorf("it said %q", d.Reply.Message.Text())
		}
	}
}
