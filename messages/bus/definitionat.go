package bus

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// DefinitionAt is the definition of an agent at a revision, as long as the bucket keeps it. messages.ErrUnknownAgent: there
// is none.
func (b *Bus) DefinitionAt(ctx context.Context, name string, revision uint64) (messages.Definition, error) {
	var def messages.Definition
	none := fmt.Errorf("%w: %s has no revision %d", messages.ErrUnknownAgent, messages.Clip(name, 64), revision)
	if !messages.ValidToken(name) || revision == 0 {
		return def, none
	}
	m, ok, err := b.get(ctx, streamAgents, lookup{Seq: revision})
	switch {
	case err != nil:
		return def, fmt.Errorf("read agent %s: %w", name, err)
	case !ok || m.subject != agentPrefix+name || isRemoved(m):
		return def, none
	}
	if err := messages.Decode(m.data, &def); err != nil {
		return def, fmt.Errorf("%w %s: %v", errBadAgent, name, err) //nolint:errorlint // not a field of who asks
	}
	def.SetDefaults()
	def.Revision = m.seq
	if err := def.Validate(); err != nil || def.Name != name {
		return def, fmt.Errorf("%w %s at revision %d", errBadAgent, name, revision)
	}
	return def, nil
}
