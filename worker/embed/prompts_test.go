package embed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
)

var _ embed.PromptStore = dispatcher.Prompts{}

type brokenStore struct{ err error }

func (b brokenStore) Get(context.Context, string, uint64) (messages.Prompt, error) {
	return messages.Prompt{}, b.err
}

func prompted(version uint64) messages.Definition {
	return messages.Definition{Name: "a", Prompt: &messages.PromptRef{ID: "greet", Version: version}}
}

// A prompt that cannot be had, or filled in, ends the run; a store that fails does not.
func TestPromptsThatFail(t *testing.T) {
	t.Parallel()
	var store embed.MemoryPrompts
	if _, err := store.Put(messages.Prompt{ID: "greet", Text: "Greet {name}."}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		store embed.PromptStore
		def   messages.Definition
		says  string
	}{
		"a missing variable": {&store, prompted(0), "vars: missing: name"},
		"an unknown version": {&store, prompted(7), "unknown prompt greet"},
		"an unknown prompt":  {&embed.MemoryPrompts{}, prompted(0), "unknown prompt greet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, embed.Config{Model: agenttest.Replies(), Prompts: tt.store, Agent: tt.def}, hello())
			res, err := s.Run(t.Context())
			if err != nil || res.Error == nil || res.Error.Code != messages.CodeInvalidInput || !strings.Contains(res.Error.Message, tt.says) {
				t.Errorf("%+v, %v", res.Error, err)
			}
		})
	}
	away := errors.New("the store is away")
	s := open(t, embed.Config{Model: agenttest.Replies(), Prompts: brokenStore{away}, Agent: prompted(0)}, hello())
	if _, err := s.Run(t.Context()); !errors.Is(err, away) {
		t.Errorf("a store that fails: %v", err)
	}
	if _, err := embed.New(embed.Config{Model: agenttest.Replies(), Agent: prompted(0)}); err == nil || !strings.Contains(err.Error(), "Prompts") {
		t.Errorf("an agent with a prompt, and no store: %v", err)
	}
}

func TestMemoryPrompts(t *testing.T) {
	t.Parallel()
	var store embed.MemoryPrompts
	for id, text := range map[string]string{"no token!": "x", "empty": "", "open": "Greet {name"} {
		if _, err := store.Put(messages.Prompt{ID: id, Text: text}); err == nil {
			t.Errorf("%s was stored", id)
		}
	}
	var versions []uint64
	for i := range 70 {
		p, err := store.Put(messages.Prompt{ID: "p", Text: fmt.Sprint("text ", i)})
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, p.Version)
	}
	if _, err := store.Get(t.Context(), "p", versions[5]); !errors.Is(err, messages.ErrUnknownPrompt) {
		t.Errorf("a version that is dropped: %v", err)
	}
	if p, err := store.Get(t.Context(), "p", versions[6]); err != nil || p.Text != "text 6" {
		t.Errorf("the oldest: %+v, %v", p, err)
	}
	if p, err := store.Get(t.Context(), "p", 0); err != nil || p.Text != "text 69" {
		t.Errorf("the newest: %+v, %v", p, err)
	}
}
