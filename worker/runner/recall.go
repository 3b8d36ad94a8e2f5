package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/policy"
)

// memoryWork searches long-term memory for a run, once. What it finds becomes a record, so that the run sees the same again wherever and
// whenever it continues.
type memoryWork struct {
	*job

	journal *journal
	own     *ownership
	rules   *policyWork
}

const (
	maxQuery       = 8 << 10 // bytes of a task that memory is searched with
	bytesOfToken   = 4
	recallAttempts = 3           // of a search without which the run fails
	recallPause    = time.Second // before the second, and twice as long before the third
)

var (
	errNoMemory   = errors.New("this worker has none: set LONGSHORE_MEMORY")
	errMemorySlow = errors.New("it did not answer in time")
)

// recall searches and commits what came of it. A search that fails is recorded too: the run continues without memories, unless its agent
// requires them.
func (x *memoryWork) recall(ctx context.Context) (agent.Action, error) {
	p := x.journal.state.Agent.RecallPolicy()
	call, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	defer x.own.listen(abort)()
	defer x.journal.bound(abort)()
	began := x.now()
	var meter longterm.Meter
	found, err := x.searchAll(meter.Metered(call), p)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(context.Cause(call), errControl):
		return x.journal.replan(ctx)
	case errors.Is(err, errFenced) || errors.Is(err, errNoProof):
		return nil, err
	default:
		found = foundMemories{record: &record.MemoryRecalled{Error: strict.Clip(x.cfg.Redact(err.Error()), maxRecallError), Fatal: p.Required}}
	}
	found.record.Millis, found.record.Embedded = x.now().Sub(began).Milliseconds(), x.embedded(&meter)
	return x.journal.commitPaid(append([]record.Record{found.record}, x.rules.applied(x.journal.state, messages.ToolCall{Name: messages.ToolRecall}, found.applied)...)...)
}

const maxRecallError = 1 << 10 // bytes

// foundMemories is what a search brought, and what rules said of it.
type foundMemories struct {
	record  *record.MemoryRecalled
	applied []policy.Finding
}

// searchAll makes attempts until one succeeds.
func (x *memoryWork) searchAll(ctx context.Context, p *messages.RecallPolicy) (found foundMemories, err error) {
	if x.cfg.Memory == nil {
		return found, errNoMemory
	}
	attempts := 1
	if p.Required {
		attempts = recallAttempts
	}
	for i := range attempts {
		if i > 0 {
			select {
			case <-time.After(time.Duration(i) * recallPause):
			case <-ctx.Done():
				return found, context.Cause(ctx)
			}
		}
		if found, err = x.search(ctx, p); err == nil || ctx.Err() != nil || errors.Is(err, errFenced) || errors.Is(err, errNoProof) {
			return found, err
		}
	}
	return found, err
}

// search looks into each collection and takes the best of what it finds.
func (x *memoryWork) search(ctx context.Context, p *messages.RecallPolicy) (foundMemories, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(p.Timeout), errMemorySlow)
	defer cancel()
	s := x.journal.state
	var sees longterm.Scope
	sees.Agent, sees.Session, _ = p.Sees(s.Agent.Name, s.Task.Session)
	out := foundMemories{record: &record.MemoryRecalled{}}
	text := strict.Clip(s.Task.Input.Text(), maxQuery)
	if strings.TrimSpace(text) == "" { // such as a picture
		return out, nil
	}
	var all []record.Memory
	var lacks []string
	for _, place := range placesOf(s.Agent, p, sees) {
		name := place.collection
		// A search may have its text embedded by a model that is paid for, and the one before may have taken long.
		if err := x.own.prove(ctx); err != nil {
			return out, err
		}
		found, err := x.cfg.Memory.Search(ctx, longterm.Place{Tenant: x.run.Tenant, Collection: name}, longterm.Search{
			Filter: place.filter, Text: text, TopK: p.TopK,
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return out, context.Cause(ctx)
		case err != nil:
			return out, fmt.Errorf("search %s: %w", name, err)
		case found.Degraded != "" && !slices.Contains(lacks, found.Degraded):
			lacks = append(lacks, found.Degraded)
		}
		for i := range found.Hits {
			all = append(all, memoryOf(name, &found.Hits[i]))
		}
	}
	slices.SortStableFunc(all, func(a, b record.Memory) int { return cmp.Compare(b.Score, a.Score) })
	out.record.Degraded = strings.Join(lacks, "; ")
	x.take(&out, p, all)
	return out, nil
}

// searchedPlace is a collection, and what of it a run may be told.
type searchedPlace struct {
	collection string
	filter     longterm.Filter
}

// placesOf are the collections of a policy, and the examples of an agent that learns: its own, without those that were rated down.
func placesOf(def *messages.Definition, p *messages.RecallPolicy, sees longterm.Scope) (out []searchedPlace) {
	learn := def.LearnPolicy()
	for _, name := range p.Collections {
		if learn == nil || name != learn.Collection {
			out = append(out, searchedPlace{name, longterm.Filter{VisibleTo: &sees}})
		}
	}
	if learn != nil {
		out = append(out, searchedPlace{learn.Collection, longterm.Filter{
			VisibleTo: &longterm.Scope{Agent: def.Name}, Tags: []string{tagExample}, Ranges: []longterm.Range{{Field: fieldRating, From: leastRating(learn)}},
		}})
	}
	return out
}

func memoryOf(collection string, h *longterm.Hit) record.Memory {
	m := record.Memory{Text: h.Text, MemoryUsed: messages.MemoryUsed{
		ID: h.ID, Collection: collection, Score: h.Score, Run: h.Source.Run, Document: h.Source.Document, Created: h.Created,
	}}
	if m.Document != "" {
		m.Part = h.Source.Position + 1
	}
	return m
}

// take takes the best that fit into the policy's tokens, without secrets and what rules take out. One that alone is too long is shortened.
func (x *memoryWork) take(out *foundMemories, p *messages.RecallPolicy, all []record.Memory) {
	rules := x.rules.of(x.journal.state.Agent)
	room := p.Tokens * bytesOfToken
	for i := range all {
		m := &all[i]
		if len(out.record.Memories) == p.TopK || m.Score < p.MinScore*all[0].Score {
			return
		}
		var found []policy.Finding
		var withheld bool
		m.Text, found, withheld = rules.Text(messages.PolicyOutput, messages.ToolRecall, x.cfg.Redact(m.Text))
		m.Document = x.cfg.Redact(m.Document)
		out.applied = append(out.applied, found...)
		first := len(out.record.Memories) == 0
		switch {
		case withheld || len(m.Text) > room && !first:
			out.record.LeftOut++
			continue
		case first:
			m.Text = strict.Clip(m.Text, room)
		}
		room -= len(m.Text)
		out.record.Memories = append(out.record.Memories, *m)
	}
}
