package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/memory"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// memoryTools are remember, recall and forget, on the long-term memory of the worker.
func memoryTools(_ context.Context, part json.RawMessage, n Needs) ([]tools.Tool, func() error, error) {
	c, err := memory.ParseConfig(part)
	if err != nil {
		return nil, nil, err
	}
	if n.Memory == nil {
		return nil, nil, &messages.FieldError{Field: "collections", Reason: "need the long-term memory of the worker: set LONGSHORE_MEMORY"}
	}
	made, err := memory.Tools(longTerm{n.Memory}, c)
	return made, nil, err
}

// longTerm is the long-term memory of a worker as tools see it.
type longTerm struct{ store longterm.Store }

// unavailable is a store that does not answer.
type unavailable struct{ error }

func (unavailable) Unavailable() bool { return true }

func (u unavailable) Unwrap() error { return u.error }

// told is an error in the terms of the tools: fields by the names of their arguments.
func told(err error) error {
	if errors.Is(err, longterm.ErrUnavailable) {
		return unavailable{err}
	}
	if wrong, ok := errors.AsType[*messages.FieldError](err); ok {
		return &messages.FieldError{Field: strings.NewReplacer("items[0].", "", "scope.", "", "visibleTo.", "").Replace(wrong.Field), Reason: wrong.Reason}
	}
	return err
}

func placed(at memory.Place) (longterm.Place, longterm.Scope) {
	return longterm.Place{Tenant: at.Tenant, Collection: at.Collection}, longterm.Scope{Agent: at.Agent, Session: at.Session}
}

// Write implements memory.Store.
func (m longTerm) Write(ctx context.Context, at memory.Place, n memory.Note) error {
	place, scope := placed(at)
	scope.Subject = n.Subject
	return told(m.store.Write(ctx, place, []longterm.Item{{
		ID: n.ID, Scope: scope, Text: n.Text, Tags: n.Tags, Expires: n.Expires, Source: longterm.Source{Run: n.Run},
	}}))
}

// Search implements memory.Store.
func (m longTerm) Search(ctx context.Context, at memory.Place, q memory.Query) ([]memory.Found, string, error) {
	place, scope := placed(at)
	scope.Subject = q.Subject
	found, err := m.store.Search(ctx, place, longterm.Search{Filter: longterm.Filter{VisibleTo: &scope, Tags: q.Tags}, Text: q.Text, TopK: q.Most})
	if err != nil {
		return nil, "", told(err)
	}
	var out []memory.Found
	for i := range found.Hits {
		h := &found.Hits[i]
		out = append(out, memory.Found{
			Note:    memory.Note{ID: h.ID, Text: h.Text, Subject: h.Scope.Subject, Tags: h.Tags, Expires: h.Expires, Run: h.Source.Run},
			Created: h.Created, Score: h.Score, Document: h.Source.Document, Part: h.Source.Position,
		})
	}
	return out, found.Degraded, nil
}

// Delete implements memory.Store.
func (m longTerm) Delete(ctx context.Context, at memory.Place, ids []string) (int, error) {
	place, scope := placed(at)
	items, err := m.store.Read(ctx, place, ids)
	if err != nil {
		return 0, told(err)
	}
	var own []string // what the tenant shares, such as documents, is not an agent's to remove
	for i := range items {
		if is := items[i].Scope; is.Agent == scope.Agent && is.Session == scope.Session {
			own = append(own, items[i].ID)
		}
	}
	if len(own) == 0 {
		return 0, nil
	}
	n, err := m.store.Delete(ctx, place, longterm.Deletion{IDs: own})
	return n, told(err)
}
