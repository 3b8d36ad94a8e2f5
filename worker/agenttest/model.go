package agenttest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// Reply is what a stubbed model answers.
type Reply struct {
	Text  string
	Calls []messages.ToolCall // without an id they get one
	Stop  messages.StopReason // default: by whether there are calls
	Usage messages.Usage
	Err   error // comes after the text; what is not a *model.Error becomes one that is not retried
}

// Text is a reply of a text.
func Text(s string) Reply { return Reply{Text: s} }

// Call is a reply that calls a tool; the arguments are JSON.
func Call(tool, arguments string) Reply {
	return Reply{Calls: []messages.ToolCall{{Name: tool, Arguments: arguments}}}
}

// And adds the calls and the text of another reply to this one.
func (r Reply) And(other Reply) Reply {
	r.Text += other.Text
	r.Calls = append(slices.Clip(r.Calls), other.Calls...)
	return r
}

// Fail is a model call that fails.
func Fail(err error) Reply { return Reply{Err: err} }

// Model is a stubbed model. Safe for concurrent use.
type Model struct {
	reply func(n int, r model.Request) Reply

	mu    sync.Mutex
	asked []model.Request
}

var _ model.Provider = (*Model)(nil)

// Replies plays replies in order. A call beyond the last fails the run with no_provider.
func Replies(replies ...Reply) *Model {
	return &Model{reply: func(n int, _ model.Request) Reply {
		if n >= len(replies) {
			return Fail(&model.Error{
				Class: model.NoProvider, Detail: "the stubbed model has " + strconv.Itoa(len(replies)) + " replies and was asked once more",
			})
		}
		return replies[n]
	}}
}

// Func makes each reply of its request.
func Func(f func(model.Request) Reply) *Model {
	return &Model{reply: func(_ int, r model.Request) Reply { return f(r) }}
}

// Requests are what the model was asked so far.
func (m *Model) Requests() []model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clip(m.asked)
}

// Stream implements model.Provider.
func (m *Model) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if ctx.Err() != nil {
			yield(model.Delta{}, context.Cause(ctx))
			return
		}
		m.mu.Lock()
		n := len(m.asked)
		m.asked = append(m.asked, r)
		m.mu.Unlock()
		reply := m.reply(n, r)
		if reply.Text != "" && !yield(model.Delta{Text: reply.Text}, nil) {
			return
		}
		if ctx.Err() != nil { // the reply was made by a function that may have waited
			yield(model.Delta{}, context.Cause(ctx))
			return
		}
		if err := reply.Err; err != nil {
			if e, ok := errors.AsType[*model.Error](err); ok {
				err = e
			} else {
				err = &model.Error{Class: model.Unknown, Detail: err.Error()}
			}
			yield(model.Delta{}, err)
			return
		}
		yield(model.Delta{Reply: reply.whole(n)}, nil)
	}
}

func (r Reply) whole(n int) *model.Reply {
	m := messages.Message{Role: messages.RoleAssistant}
	if r.Text != "" {
		m.Content = messages.TextContent(r.Text)
	}
	stop := messages.StopEnd
	for i, c := range r.Calls {
		stop = messages.StopToolCalls
		if c.ID == "" {
			c.ID = "call-" + strconv.Itoa(n+1) + "-" + strconv.Itoa(i+1)
		}
		m.Content = append(m.Content, messages.Block{ToolCall: &c})
	}
	if r.Stop != "" {
		stop = r.Stop
	}
	return &model.Reply{Message: m, Stop: stop, Usage: r.Usage, Provider: "agenttest", Model: "stub"}
}
