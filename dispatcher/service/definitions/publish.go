package definitions

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
)

// Publish makes the built-in agents and the given ones known to the fleet. An agent that has not changed keeps
// its revision. A given one with the name of a built-in one replaces it.
func (ds *Definitions) Publish(ctx context.Context, agents []messages.Definition) error {
	for _, d := range messages.BuiltinAgents() {
		if named(agents, d.Name) {
			continue
		}
		if err := ds.publishBuiltin(ctx, d); err != nil {
			return fmt.Errorf("publish agent %s: %w", d.Name, err)
		}
	}
	for _, d := range agents {
		if ds.cfg.Agents != nil {
			if err := ds.cfg.Agents(&d); err != nil {
				return fmt.Errorf("publish agent %s: %w", d.Name, err)
			}
		}
		revision, changed, err := ds.cfg.Catalog.PutAgent(ctx, d)
		if err != nil {
			return fmt.Errorf("publish agent %s: %w", d.Name, err)
		}
		if changed {
			ds.cfg.Log.InfoContext(ctx, "agent published", "agent", d.Name, "revision", revision)
		}
	}
	return nil
}

func named(agents []messages.Definition, name string) bool {
	for _, d := range agents {
		if d.Name == name {
			return true
		}
	}
	return false
}

// publishBuiltin makes a built-in agent known, unless a person has put or deleted an agent of its name.
func (ds *Definitions) publishBuiltin(ctx context.Context, def messages.Definition) error {
	changes, err := ds.cfg.Catalog.AgentHistory(ctx, def.Name)
	if err != nil {
		return err
	}
	if len(changes) > 0 && changes[0].By != catalog.ByDispatcher && changes[0].By != "" { // without a name: an older dispatcher
		return nil
	}
	_, _, err = ds.cfg.Catalog.PutAgent(ctx, def)
	return err
}
