package embed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/prompt"
	"github.com/longshore-run/longshore/messages/strict"
)

// PromptStore has the prompts that agents name. Client.Prompts of package dispatcher is one, of a fleet; so is a MemoryPrompts.
type PromptStore interface {
	// Get returns a version of a prompt, or the newest for 0; messages.ErrUnknownPrompt if there is none, which ends the
	// run with invalid_input. Any other error is Run's, which may be called again.
	Get(ctx context.Context, id string, version uint64) (messages.Prompt, error)
}

// maxVersions of a prompt are kept, as in a fleet.
const maxVersions = 64

// prompt fills in the agent's prompt when a run begins; nil: there is no store.
func (s *Service) prompt() func(context.Context, *messages.Definition, *messages.Task) error {
	if s.cfg.Prompts == nil {
		return nil
	}
	return prompt.Resolver{Get: s.cfg.Prompts.Get, Redact: s.cfg.Secrets.String}.Resolve
}

// MemoryPrompts is a store of prompts in memory. The zero value is empty. Safe for concurrent use.
type MemoryPrompts struct {
	mu   sync.Mutex
	last uint64
	all  map[string][]messages.Prompt // versions by id, oldest first
}

var _ PromptStore = (*MemoryPrompts)(nil)

// Put checks a prompt and stores it as the newest version of its id, which it returns with its number. The newest 64
// versions of an id are kept. The error says all that is wrong.
func (m *MemoryPrompts) Put(p messages.Prompt) (messages.Prompt, error) {
	p.SetDefaults()
	if v := prompt.Validate(p, nil); !v.OK {
		return messages.Prompt{}, fmt.Errorf("prompt %s: %s", strict.Clip(p.ID, 128), strings.Join(v.Errors, "; "))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	p.Version = m.last
	if m.all == nil {
		m.all = map[string][]messages.Prompt{}
	}
	versions := append(m.all[p.ID], p)
	m.all[p.ID] = slices.Clone(versions[max(0, len(versions)-maxVersions):])
	return p, nil
}

// Get implements PromptStore.
func (m *MemoryPrompts) Get(_ context.Context, id string, version uint64) (messages.Prompt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range slices.Backward(m.all[id]) {
		if version == 0 || p.Version == version {
			return p, nil
		}
	}
	return messages.Prompt{}, fmt.Errorf("%w %s", messages.ErrUnknownPrompt, strict.Clip(id, 128))
}
