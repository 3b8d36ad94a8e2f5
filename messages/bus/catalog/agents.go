package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	agentTTL  = 2 * time.Second // what was read counts as current: an edit is seen by new runs within this time
	maxCached = 1024            // bounds the cache, which then begins anew
)

// errBadAgent means that the bucket holds something that is no definition.
var errBadAgent = errors.New("unreadable definition of agent")

// agentCache holds the agents that were read lately, so that a task costs no request.
type agentCache struct {
	reading singleflight.Group

	mu     sync.Mutex
	byName map[string]cachedAgent
}

type cachedAgent struct {
	messages.Definition
	until time.Time
}

func (c *agentCache) get(name string) (messages.Definition, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.byName[name]
	return a.Definition, ok && time.Now().Before(a.until)
}

func (c *agentCache) put(d messages.Definition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName == nil || len(c.byName) >= maxCached {
		c.byName = map[string]cachedAgent{}
	}
	c.byName[d.Name] = cachedAgent{d, time.Now().Add(agentTTL)}
}

func (c *agentCache) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byName, name)
}

// PutAgent stores an agent under its name, defaults filled and checked. A content that is there already makes no new
// revision: changed is then false and revision the one that is there.
func (cat *Catalog) PutAgent(ctx context.Context, def messages.Definition) (revision uint64, changed bool, err error) {
	change, changed, err := cat.ApplyAgent(ctx, def, ByDispatcher, nil)
	return change.Revision, changed, err
}

// ByDispatcher is who put the agents that a dispatcher publishes when it starts.
const ByDispatcher = "dispatcher"

// ApplyAgent is PutAgent with an author. With ifRevision it is done only if this is the newest revision, 0 for none; else
// the error is messages.ErrRevision.
func (cat *Catalog) ApplyAgent(ctx context.Context, def messages.Definition, by string, ifRevision *uint64) (change control.Change, changed bool, err error) {
	def.SetDefaults()
	def.Revision = 0 // the bucket's to give
	if err := def.Validate(); err != nil {
		return change, false, err
	}
	body, err := json.Marshal(def)
	if err != nil {
		return change, false, fmt.Errorf("encode agent %s: %w", def.Name, err)
	}
	change, changed, err = bus.AgentsBucket.Apply(ctx, cat.bus, bus.Edit{Name: def.Name, Body: body, By: by, IfRevision: ifRevision})
	if err != nil {
		return change, false, fmt.Errorf("store agent %s: %w", def.Name, err)
	}
	def.Revision = change.Revision
	cat.agents.put(def)
	return change, changed, nil
}

// Agent is the current definition of an agent, at most two seconds old. The built-in ones are there unless the bucket has
// its own. With messages.ErrUnknownAgent come the names that there are.
func (cat *Catalog) Agent(ctx context.Context, name string) (messages.Definition, error) {
	if !strict.ValidToken(name) {
		return messages.Definition{}, fmt.Errorf("%w: the name is not valid", messages.ErrUnknownAgent)
	}
	if def, ok := cat.agents.get(name); ok {
		return def, nil
	}
	// One read serves all that ask meanwhile: a worker may begin thousands of runs of an agent at once.
	read := cat.agents.reading.DoChan(name, func() (any, error) { return cat.loadAgent(context.WithoutCancel(ctx), name) })
	select {
	case r := <-read:
		def, _ := r.Val.(messages.Definition)
		return def, r.Err
	case <-ctx.Done():
		return messages.Definition{}, context.Cause(ctx)
	}
}

func (cat *Catalog) loadAgent(ctx context.Context, name string) (messages.Definition, error) {
	def, ok, err := cat.readAgent(ctx, bus.AgentsBucket.Prefix+name)
	switch {
	case err != nil:
		return messages.Definition{}, err
	case !ok:
		if def, ok = messages.Builtin(name); !ok {
			return messages.Definition{}, cat.unknownAgent(ctx, name)
		}
	}
	cat.agents.put(def)
	return def, nil
}

func (cat *Catalog) unknownAgent(ctx context.Context, name string) error {
	known, err := cat.Agents(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(known))
	for i, d := range known {
		names[i] = d.Name
	}
	return fmt.Errorf("%w %q; known: %s", messages.ErrUnknownAgent, name, strings.Join(names, ", "))
}

// readAgent reads a definition from the bucket's leader; ok is false when there is none.
func (cat *Catalog) readAgent(ctx context.Context, subject string) (def messages.Definition, ok bool, err error) {
	name := strings.TrimPrefix(subject, bus.AgentsBucket.Prefix)
	m, ok, err := bus.AgentsBucket.At(ctx, cat.bus, name, 0)
	if err != nil {
		return def, false, fmt.Errorf("read agent %s: %w", name, err)
	}
	if !ok || bus.IsRemoved(m) {
		return def, false, nil
	}
	def, err = decodeAgent(name, m)
	return def, err == nil, err
}

// decodeAgent reads a revision of an agent.
func decodeAgent(name string, m bus.Message) (def messages.Definition, err error) {
	if err := strict.Decode(m.Data, &def); err != nil {
		return def, fmt.Errorf("%w %s: %s", errBadAgent, name, err.Error()) // not wrapped: it is no field of the request
	}
	if def.Name != name {
		return def, fmt.Errorf("%w %s: its name is %q", errBadAgent, name, strict.Clip(def.Name, 64))
	}
	def.SetDefaults()
	def.Revision = m.Seq
	if err := def.Validate(); err != nil {
		return def, fmt.Errorf("%w %s: %s", errBadAgent, name, err.Error()) // not wrapped: it is no field of the request
	}
	return def, nil
}

// Agents are all agents by name, the built-in ones among them unless the bucket has its own.
func (cat *Catalog) Agents(ctx context.Context) ([]messages.Definition, error) {
	var defs []messages.Definition
	for subject, err := range cat.bus.Stream(bus.StreamAgents).Subjects(ctx, bus.AgentsBucket.Prefix+"*") {
		if err != nil {
			return nil, fmt.Errorf("list agents: %w", err)
		}
		def, ok, err := cat.readAgent(ctx, subject)
		if errors.Is(err, errBadAgent) { // one that cannot be read does not hide the others
			cat.bus.Log().WarnContext(ctx, "agent skipped", "err", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if ok {
			defs = append(defs, def)
		}
	}
	for _, d := range messages.BuiltinAgents() {
		if !slices.ContainsFunc(defs, func(o messages.Definition) bool { return o.Name == d.Name }) {
			defs = append(defs, d)
		}
	}
	slices.SortFunc(defs, func(a, b messages.Definition) int { return strings.Compare(a.Name, b.Name) })
	return defs, nil
}

// AgentAt returns a revision of an agent as it was, or the newest for 0; messages.ErrUnknownAgent: there is none, or it
// is no longer kept. A deleted one comes without its definition.
func (cat *Catalog) AgentAt(ctx context.Context, name string, revision uint64) (control.AgentRevision, error) {
	var out control.AgentRevision
	if !strict.ValidToken(name) {
		return out, fmt.Errorf("%w: the name is not valid", messages.ErrUnknownAgent)
	}
	def, builtin := messages.Builtin(name)
	m, ok, err := bus.AgentsBucket.At(ctx, cat.bus, name, revision)
	switch {
	case err != nil:
		return out, fmt.Errorf("read agent %s: %w", name, err)
	case revision == 0 && builtin && (!ok || bus.IsRemoved(m)): // what its runs get
		return control.AgentRevision{Change: control.Change{Name: name}, Agent: &def}, nil
	case !ok && revision == 0:
		return out, cat.unknownAgent(ctx, name)
	case !ok:
		return out, fmt.Errorf("%w: %s has no revision %d, or it is no longer kept", messages.ErrUnknownAgent, name, revision)
	}
	out.Change = bus.ChangeOf(name, m)
	if out.Change.Deleted {
		return out, nil
	}
	def, err = decodeAgent(name, m)
	if err != nil {
		return out, err
	}
	out.Agent = &def
	return out, nil
}

// AgentHistory is what is kept of the revisions of an agent, newest first; messages.ErrUnknownAgent: it never was.
func (cat *Catalog) AgentHistory(ctx context.Context, name string) ([]control.Change, error) {
	if !strict.ValidToken(name) {
		return nil, fmt.Errorf("%w: the name is not valid", messages.ErrUnknownAgent)
	}
	changes, err := bus.AgentsBucket.History(ctx, cat.bus, name)
	if _, builtin := messages.Builtin(name); err == nil && len(changes) == 0 && !builtin {
		err = cat.unknownAgent(ctx, name)
	}
	return changes, err
}

// DeleteAgent removes an agent; its history stays, and its runs continue. Other processes may begin runs of it for two
// more seconds; messages.ErrUnknownAgent: there is none.
func (cat *Catalog) DeleteAgent(ctx context.Context, r control.CatalogDelete) (control.Change, error) {
	if err := r.Check(); err != nil {
		return control.Change{}, err
	}
	c, changed, err := bus.AgentsBucket.Apply(ctx, cat.bus, bus.Edit{Name: r.Name, By: r.By, IfRevision: r.IfRevision})
	cat.agents.drop(r.Name)
	if err == nil && !changed {
		err = cat.unknownAgent(ctx, r.Name)
	}
	return c, err
}
