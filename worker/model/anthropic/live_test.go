package anthropic_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/anthropic"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// TestLive makes two real calls when a key and a model are in the environment. It costs a few hundred tokens.
func TestLive(t *testing.T) {
	own, name := os.Getenv("ANTHROPIC_API_KEY"), os.Getenv("ANTHROPIC_MODEL")
	if own == "" || name == "" {
		t.Skip("left out: ANTHROPIC_API_KEY and ANTHROPIC_MODEL are not both set")
	}
	p, err := anthropic.New(anthropic.Config{Endpoint: httpstream.Endpoint{APIKey: own, BaseURL: os.Getenv("ANTHROPIC_BASE_URL")}, Model: name})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := model.Request{
		MaxTokens: 300, Echo: true, Messages: []messages.Message{user("What is in manifest.txt? Read it.")},
		Tools: []messages.ToolSpec{{
			Name: "files.read", Description: "Reads a file.",
			InputSchema: []byte(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		}},
	}
	o := call(ctx, p, r)
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	calls := o.Reply.Message.Calls()
	if len(calls) == 0 || calls[0].Name != "files.read" || o.Reply.Stop != messages.StopToolCalls {
		t.Fatalf("no call: %+v", o.Reply)
	}
	r.Messages = append(r.Messages, o.Reply.Message)
	for _, c := range calls {
		r.Messages = append(r.Messages, answered(c.ID, messages.Block{Text: "12 crates of tea"}))
	}
	o = call(ctx, p, r)
	if o.Err != nil || o.Text == "" || o.Reply.Usage.Total == 0 {
		t.Errorf("got %+v", o)
	}
}
