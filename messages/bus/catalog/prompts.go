package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// maxPrompts bounds a list.
const maxPrompts = 1000

// PutPrompt stores a version of a prompt, defaults filled and checked, but not read as a template. A content that is
// there already makes no new version, whatever its author: changed is then false; messages.ErrRevision: ifVersion did not
// hold.
func (cat *Catalog) PutPrompt(ctx context.Context, put control.PromptPut) (p messages.Prompt, changed bool, err error) {
	p = put.Prompt
	p.SetDefaults()
	if err := p.Validate(); err != nil {
		return p, false, err
	}
	by := p.Author
	p.Version, p.CreatedAt, p.Author = 0, nil, "" // the bucket's to tell
	body, err := json.Marshal(p)
	if err != nil {
		return p, false, fmt.Errorf("encode prompt %s: %w", p.ID, err)
	}
	change, changed, err := bus.PromptsBucket.Apply(ctx, cat.bus, bus.Edit{Name: p.ID, Body: body, By: by, IfRevision: put.IfVersion})
	if err != nil {
		return p, false, fmt.Errorf("store prompt %s: %w", p.ID, err)
	}
	return stamped(p, change), changed, nil
}

func stamped(p messages.Prompt, c control.Change) messages.Prompt {
	p.Version, p.Author, p.CreatedAt = c.Revision, c.By, &c.At
	return p
}

// Prompt returns a version of a prompt, or the newest for 0; messages.ErrUnknownPrompt: there is none, it was deleted,
// or the version is no longer kept.
func (cat *Catalog) Prompt(ctx context.Context, id string, version uint64) (messages.Prompt, error) {
	if !strict.ValidToken(id) {
		return messages.Prompt{}, fmt.Errorf("%w: the id is not valid", messages.ErrUnknownPrompt)
	}
	m, ok, err := bus.PromptsBucket.At(ctx, cat.bus, id, version)
	switch {
	case err != nil:
		return messages.Prompt{}, fmt.Errorf("read prompt %s: %w", id, err)
	case !ok || bus.IsRemoved(m):
		if version != 0 {
			return messages.Prompt{}, fmt.Errorf("%w %s of version %d", messages.ErrUnknownPrompt, id, version)
		}
		return messages.Prompt{}, fmt.Errorf("%w %s", messages.ErrUnknownPrompt, id)
	}
	var p messages.Prompt
	if err := strict.Decode(m.Data, &p); err != nil {
		return p, fmt.Errorf("unreadable prompt %s: %s", id, err.Error()) // not wrapped: it is no field of the request
	}
	if p.ID != id {
		return p, fmt.Errorf("unreadable prompt %s: its id is %q", id, strict.Clip(p.ID, 64))
	}
	return stamped(p, bus.ChangeOf(id, m)), nil
}

// Prompts are the prompts that fit a filter, by id, without their texts; 1000 at most. One that cannot be read is
// skipped and logged.
func (cat *Catalog) Prompts(ctx context.Context, f control.PromptFilter) ([]messages.Prompt, error) {
	out := []messages.Prompt{}
	for subject, err := range cat.bus.Stream(bus.StreamPrompts).Subjects(ctx, bus.PromptsBucket.Prefix+"*") {
		if err != nil {
			return nil, fmt.Errorf("list prompts: %w", err)
		}
		id := strings.TrimPrefix(subject, bus.PromptsBucket.Prefix)
		m, ok, err := bus.PromptsBucket.At(ctx, cat.bus, id, 0)
		if err != nil {
			return nil, fmt.Errorf("list prompts: %w", err)
		}
		if !ok || bus.IsRemoved(m) {
			continue
		}
		var p messages.Prompt
		if err := strict.Decode(m.Data, &p); err != nil {
			cat.bus.Log().WarnContext(ctx, "prompt skipped", "err", err)
			continue
		}
		if f.Tag != "" && !slices.Contains(p.Tags, f.Tag) || !strings.Contains(p.ID, f.Name) && !strings.Contains(p.Name, f.Name) {
			continue
		}
		p.Text = ""
		if out = append(out, stamped(p, bus.ChangeOf(id, m))); len(out) == maxPrompts {
			break
		}
	}
	slices.SortFunc(out, func(a, b messages.Prompt) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// PromptHistory is what is kept of the versions of a prompt, newest first. It fails with messages.ErrUnknownPrompt
// when there never was one.
func (cat *Catalog) PromptHistory(ctx context.Context, id string) ([]control.Change, error) {
	if !strict.ValidToken(id) {
		return nil, fmt.Errorf("%w: the id is not valid", messages.ErrUnknownPrompt)
	}
	changes, err := bus.PromptsBucket.History(ctx, cat.bus, id)
	if err == nil && len(changes) == 0 {
		err = fmt.Errorf("%w %s", messages.ErrUnknownPrompt, id)
	}
	return changes, err
}

// DeletePrompt removes a prompt; its history stays, and runs that began with it continue. It fails with
// messages.ErrUnknownPrompt when there is none.
func (cat *Catalog) DeletePrompt(ctx context.Context, r control.CatalogDelete) (control.Change, error) {
	if err := r.Check(); err != nil {
		return control.Change{}, err
	}
	c, changed, err := bus.PromptsBucket.Apply(ctx, cat.bus, bus.Edit{Name: r.Name, By: r.By, IfRevision: r.IfRevision})
	if err == nil && !changed {
		err = fmt.Errorf("%w %s", messages.ErrUnknownPrompt, r.Name)
	}
	return c, err
}
