package definitions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/runlog"
)

// onlyTexts finds in what an agent differs from the one that is stored beside its texts, for a caller who may change no more.
// A new agent may have texts, and nothing else that is not a default. The revision is that of the agent that it was compared with; 0:
// there is none. The field is the first that differs; empty: none does.
func (ds *Definitions) onlyTexts(ctx context.Context, next *messages.Definition) (revision uint64, field string, err error) {
	was := messages.Definition{Name: next.Name}
	was.SetDefaults()
	stored, err := ds.cfg.Catalog.AgentAt(ctx, next.Name, 0)
	switch {
	case errors.Is(err, runlog.ErrNotFound), errors.Is(err, messages.ErrUnknownAgent):
	case err != nil:
		return 0, "", err
	case stored.Agent != nil:
		was, revision = *stored.Agent, stored.Change.Revision
	}
	if revision == 0 || was.Expires != nil { // what an author may make may go by itself; what others made, an author may not remove
		was.Expires = next.Expires
	}
	field, err = differs(withoutTexts(was), withoutTexts(*next))
	return revision, field, err
}

// granted says who may change a field that is no text.
const granted = "may only be changed by a granter or an admin; an author changes description, instructions, prompt and prompts"

// withoutTexts is an agent without what an author may change.
func withoutTexts(d messages.Definition) messages.Definition {
	d.Revision, d.Description, d.Instructions, d.Prompt, d.Prompts = 0, "", "", nil, nil
	return d
}

// differs names the first field in which two agents are not alike; empty if they are.
func differs(a, b messages.Definition) (string, error) {
	one, err := fieldsOf(a)
	if err != nil {
		return "", err
	}
	other, err := fieldsOf(b)
	if err != nil {
		return "", err
	}
	names := slices.Collect(maps.Keys(one))
	names = slices.AppendSeq(names, maps.Keys(other))
	slices.Sort(names)
	for _, name := range names {
		if !bytes.Equal(one[name], other[name]) {
			return name, nil
		}
	}
	return "", nil
}

func fieldsOf(d messages.Definition) (fields map[string]json.RawMessage, err error) {
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(data, &fields)
	return fields, err
}
