package runner_test

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/policy"
	"github.com/longshore-run/longshore/worker/runner"
)

// pieces is a model that streams a reply in these pieces. It runs begun after the first one, and done in the end.
type pieces struct {
	text        []string
	begun, done func()
}

func (p pieces) Stream(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for i, s := range p.text {
			if !yield(model.Delta{Text: s}, nil) {
				return
			}
			if i == 0 {
				p.begun()
			}
		}
		p.done()
		yield(model.Delta{Reply: &model.Reply{Message: messages.Message{Content: messages.TextContent("done")}, Stop: messages.StopEnd}}, nil)
	}
}

// A hook that is slow does not hold the reply up; what it cannot take is dropped and counted, and no secret passes.
func TestTokensAreDroppedAndRedacted(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var text strings.Builder
	dropped := 0
	called, release := make(chan struct{}, 10), make(chan struct{})
	hook := runner.Hook{On: messages.HookOnTokens, Timeout: messages.MaxHookTimeout, Func: func(_ context.Context, c messages.HookCall) (messages.HookAnswer, error) {
		called <- struct{}{}
		<-release
		mu.Lock()
		defer mu.Unlock()
		text.WriteString(c.Text)
		dropped += c.Dropped
		return messages.HookAnswer{}, nil
	}}
	large, first := strings.Repeat("x", 40<<10), "So much of the text goes to the hook at once: "
	service, err := embed.New(embed.Config{
		Model:   pieces{[]string{first, "a pass", "word-1234 b", large, large, "c"}, func() { <-called }, func() { close(release) }},
		Secrets: policy.NewRedactor("password-1234"), Hooks: []runner.Hook{hook},
	})
	if err != nil {
		t.Fatal(err)
	}
	session, err := service.Session(messages.Task{Input: messages.TextInput("Go!")})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := session.Run(t.Context()); err != nil || res.Result != "done" {
		t.Fatalf("%+v, %v", res, err)
	}
	got := text.String()
	if strings.Contains(got, "word-1234") || !strings.HasPrefix(got, first+"a "+policy.Mark+" b") || !strings.HasSuffix(got, "c") {
		t.Errorf("the hook was told %q…", got[:min(len(got), 80)])
	}
	if dropped != len(large) {
		t.Errorf("%d bytes were dropped, want %d", dropped, len(large))
	}
}
