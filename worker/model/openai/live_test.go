package openai_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
	"github.com/longshore-run/longshore/worker/model/openai"
)

// TestLive asks a real endpoint for one tool call and one short answer. It costs a few hundred tokens.
func TestLive(t *testing.T) {
	own, name := os.Getenv("OPENAI_API_KEY"), os.Getenv("OPENAI_MODEL")
	if own == "" || name == "" {
		t.Skip("left out: OPENAI_API_KEY and OPENAI_MODEL name no endpoint to ask (OPENAI_BASE_URL is optional)")
	}
	p, err := openai.New(openai.Config{Endpoint: httpstream.Endpoint{BaseURL: os.Getenv("OPENAI_BASE_URL"), APIKey: own}, Model: name})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r := model.Request{
		MaxTokens: 2000, Echo: true,
		Messages: []messages.Message{{Role: messages.RoleUser, Content: messages.TextContent(
			"Call the tool tide once, then answer with the number that it gives and nothing else.",
		)}},
		Tools: []messages.ToolSpec{{
			Name: "tide", Description: "The height of the tide at a port, in metres.",
			InputSchema: []byte(`{"type":"object","properties":{"port":{"type":"string"}},"required":["port"]}`),
		}},
	}
	o := call(ctx, p, r)
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	calls := o.Reply.Message.Calls()
	if len(calls) == 0 || calls[0].Name != "tide" || o.Reply.Stop != messages.StopToolCalls {
		t.Fatalf("no call of the tool: %+v", o.Reply)
	}
	answer := messages.Message{Role: messages.RoleTool}
	for _, c := range calls {
		answer.Content = append(answer.Content, messages.Block{ToolResult: &messages.ToolResult{CallID: c.ID, Content: messages.TextContent("4.2")}})
	}
	r.Messages = append(r.Messages, o.Reply.Message, answer)
	o = call(ctx, p, r)
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	if o.Text == "" || o.Text != o.Reply.Message.Text() || o.Reply.Usage.Total == 0 {
		t.Errorf("got %+v", o.Reply)
	}
}
