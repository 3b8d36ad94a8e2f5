// Package modeltest checks that a provider keeps the promises of model.Provider. Every provider runs it.
package modeltest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// Answer is what a provider under test must be made to answer every request with.
type Answer struct {
	Text  string              // streamed in several pieces
	Calls []messages.ToolCall // after the text; the ids may be others
	Fail  model.Class         // instead of a reply, after the text; empty: none
	Hang  bool                // after the text nothing comes, and the call stays open until it is aborted
}

// Model is the model that requests name.
const Model = "conformance-1"

// deadline bounds every wait of the suite.
const deadline = 10 * time.Second

// Run checks the provider that open makes. Open is called once for each check; it registers its own cleanup.
func Run(t *testing.T, open func(t *testing.T, a Answer) model.Provider) {
	t.Helper()
	const text = "The quay is clear, the tide is high: cast off. Überfahrt läuft."
	one := messages.ToolCall{ID: "call_a", Name: "read_file", Arguments: `{"filePath":"manifest.txt"}`}
	two := messages.ToolCall{ID: "call_b", Name: "list_files", Arguments: `{}`}
	for _, tt := range []struct {
		name   string
		answer Answer
		stop   messages.StopReason
	}{
		{"text reply", Answer{Text: text}, messages.StopEnd},
		{"tool call reply", Answer{Calls: []messages.ToolCall{one}}, messages.StopToolCalls},
		{"two calls", Answer{Text: text, Calls: []messages.ToolCall{one, two}}, messages.StopToolCalls},
	} {
		t.Run(tt.name, func(t *testing.T) { reply(t, open(t, tt.answer), tt.answer, tt.stop) })
	}
	for _, class := range []model.Class{model.RateLimited, model.Overloaded, model.Auth, model.ContextLength, model.Truncated} {
		t.Run("error "+string(class), func(t *testing.T) { failure(t, open(t, Answer{Fail: class}), class) })
	}
	t.Run("error after text", func(t *testing.T) {
		failure(t, open(t, Answer{Text: text, Fail: model.Truncated}), model.Truncated)
	})
	t.Run("cancel mid-stream", func(t *testing.T) { cancelled(t, open(t, Answer{Text: text, Hang: true})) })
	t.Run("cancelled before", func(t *testing.T) { dead(t, open(t, Answer{Text: text})) })
	t.Run("it must not begin", func(t *testing.T) { held(t, open(t, Answer{Text: text})) })
	t.Run("leaving the loop", func(t *testing.T) { leave(t, open(t, Answer{Text: text, Hang: true})) })
	t.Run("concurrent calls", func(t *testing.T) { concurrent(t, open(t, Answer{Text: text}), text) })
	t.Run("the request is not changed", func(t *testing.T) { unchanged(t, open(t, Answer{Text: text})) })
}

// Request is what the suite asks: a conversation with a tool call behind it.
func Request() model.Request {
	zero := 0.0
	return model.Request{
		Key: "run.1.model", Model: Model, MaxTokens: 256, Temperature: &zero,
		Messages: []messages.Message{
			{Role: messages.RoleSystem, Content: messages.TextContent("Be brief.")},
			{Role: messages.RoleUser, Content: messages.TextContent("Is the quay clear?")},
		},
		Tools: []messages.ToolSpec{
			{Name: "list_files", Description: "Lists.", InputSchema: []byte(`{"type":"object"}`), Effect: messages.EffectRead},
			{Name: "read_file", Description: "Reads.", InputSchema: []byte(`{"type":"object"}`), Effect: messages.EffectRead},
		},
	}
}

// heard is all that a call yielded.
type heard struct {
	text    string
	pieces  int
	replies []*model.Reply
	errs    []error
}

func listen(ctx context.Context, p model.Provider, r model.Request) (h heard, broken string) {
	for d, err := range p.Stream(ctx, r) {
		switch {
		case len(h.replies)+len(h.errs) > 0:
			broken = "something follows the reply or the error"
		case err != nil:
			h.errs = append(h.errs, err)
			if d != (model.Delta{}) {
				broken = "an error comes with a delta"
			}
		case d.Reply != nil:
			h.replies = append(h.replies, d.Reply)
			if d.Shown() || d.Reset {
				broken = "a delta has two fields"
			}
		case d.Text != "":
			h.text += d.Text
			h.pieces++
		case d.Call != nil:
			if d.Call.ID == "" || d.Call.Name == "" {
				broken = "a piece of a call lacks its id or name"
			}
		default:
			broken = "an empty delta"
		}
	}
	if broken == "" && len(h.replies)+len(h.errs) != 1 {
		broken = "neither a reply nor an error came"
	}
	return h, broken
}

func reply(t *testing.T, p model.Provider, a Answer, stop messages.StopReason) {
	t.Helper()
	h, broken := listen(t.Context(), p, Request())
	if broken != "" {
		t.Fatal(broken)
	}
	if len(h.errs) > 0 {
		t.Fatal(h.errs[0])
	}
	got := h.replies[0]
	if h.text != a.Text || got.Message.Text() != a.Text {
		t.Errorf("streamed %q and replied %q, want %q", h.text, got.Message.Text(), a.Text)
	}
	if a.Text != "" && h.pieces < 2 {
		t.Errorf("the text came in %d pieces", h.pieces)
	}
	calls := got.Message.Calls()
	ids := map[string]bool{}
	for i := range calls {
		if calls[i].ID == "" || ids[calls[i].ID] {
			t.Errorf("the id %q of a call is empty or not the only one", calls[i].ID)
		}
		ids[calls[i].ID] = true
		calls[i].ID = a.Calls[min(i, len(a.Calls)-1)].ID
	}
	if diff := cmp.Diff(a.Calls, calls); diff != "" {
		t.Error(diff)
	}
	if got.Message.Role != messages.RoleAssistant || got.Stop != stop || got.Provider == "" || got.Model != Model {
		t.Errorf("role %q, stop %q, provider %q, model %q", got.Message.Role, got.Stop, got.Provider, got.Model)
	}
	if u := got.Usage; u.Input <= 0 || u.Output <= 0 || u.Total < u.Input+u.Output {
		t.Errorf("usage %+v", u)
	}
}

func failure(t *testing.T, p model.Provider, class model.Class) {
	t.Helper()
	h, broken := listen(t.Context(), p, Request())
	if broken != "" {
		t.Fatal(broken)
	}
	if len(h.errs) == 0 {
		t.Fatalf("a reply instead of an error: %+v", h.replies[0])
	}
	e, ok := errors.AsType[*model.Error](h.errs[0])
	if !ok || e.Class != class {
		t.Fatalf("got %v, want class %s", h.errs[0], class)
	}
	if e.Detail == "" {
		t.Error("the error says nothing")
	}
}

func cancelled(t *testing.T, p model.Provider) {
	t.Helper()
	cause := errors.New("enough of it")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	began := time.Now()
	var last error
	replies := 0
	for d, err := range p.Stream(ctx, Request()) {
		if last = err; d.Reply != nil {
			replies++
		}
		if d.Text != "" {
			began = time.Now()
			cancel(cause)
		}
	}
	if replies > 0 || !errors.Is(last, cause) {
		t.Errorf("%d replies and error %v, want the cause of the context", replies, last)
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("the call ended %s after it was cancelled", d)
	}
}

func dead(t *testing.T, p model.Provider) {
	t.Helper()
	cause := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	h, broken := listen(ctx, p, Request())
	if broken != "" || len(h.errs) != 1 || !errors.Is(h.errs[0], cause) || h.text != "" {
		t.Errorf("%s: got %+v, want the cause of the context alone", broken, h)
	}
}

// held checks that nothing leaves when Begin says no: its error ends the call, as the cause of the context.
func held(t *testing.T, p model.Provider) {
	t.Helper()
	no := errors.New("the run is another worker's")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	asked := 0
	r := Request()
	r.Begin = func() error {
		asked++
		cancel(no)
		return no
	}
	h, broken := listen(ctx, p, r)
	if broken != "" || len(h.errs) != 1 || !errors.Is(h.errs[0], no) || h.text != "" || asked != 1 {
		t.Errorf("%s: got %+v after Begin was asked %d times, want its error alone", broken, h, asked)
	}
}

func leave(t *testing.T, p model.Provider) {
	t.Helper()
	left := make(chan struct{})
	go func() {
		defer close(left)
		for _, err := range p.Stream(t.Context(), Request()) {
			if err != nil {
				t.Error(err)
			}
			break
		}
	}()
	select {
	case <-left:
	case <-time.After(deadline):
		t.Error("the loop cannot be left")
	}
}

func concurrent(t *testing.T, p model.Provider, text string) {
	t.Helper()
	results := make(chan string)
	const calls = 50
	for range calls {
		go func() {
			h, broken := listen(t.Context(), p, Request())
			if broken == "" && len(h.errs) > 0 {
				broken = h.errs[0].Error()
			}
			if broken == "" && h.text != text {
				broken = "wrong text: " + h.text
			}
			results <- broken
		}()
	}
	var wrong []string
	for range calls {
		if s := <-results; s != "" {
			wrong = append(wrong, s)
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%d of %d calls went wrong: %s", len(wrong), calls, strings.Join(wrong[:1], ""))
	}
}

func unchanged(t *testing.T, p model.Provider) {
	t.Helper()
	r := Request()
	if _, broken := listen(t.Context(), p, r); broken != "" {
		t.Fatal(broken)
	}
	if diff := cmp.Diff(Request(), r); diff != "" {
		t.Error(diff)
	}
}
