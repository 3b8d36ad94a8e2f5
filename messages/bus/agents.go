package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/singleflight"

	"github.com/longshore-run/longshore/messages"
)

const (
	agentTTL  = 2 * time.Second // what was read counts as current: an edit is seen by new runs within this time
	maxCached = 1024            // bounds the cache, which then begins anew
	maxPuts   = 10              // bounds how often a put races with another

	agentPrefix = "$KV." + BucketAgents + "."
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

// PutAgent stores an agent under its name, defaults filled and checked. A content that is there already makes no new
// revision: changed is then false and revision the one that is there.
func (b *Bus) PutAgent(ctx context.Context, def messages.Definition) (revision uint64, changed bool, err error) {
	def.SetDefaults()
	def.Revision = 0 // the bucket's to give
	if err := def.Validate(); err != nil {
		return 0, false, err //nolint:wrapcheck // it names the field
	}
	body, err := json.Marshal(def)
	if err != nil {
		return 0, false, fmt.Errorf("encode agent %s: %w", def.Name, err)
	}
	for range maxPuts {
		var done bool
		if revision, changed, done, err = b.putAgent(ctx, def.Name, body); err != nil {
			return 0, false, fmt.Errorf("store agent %s: %w", def.Name, err)
		}
		if done {
			def.Revision = revision
			b.agents.put(def)
			return revision, changed, nil
		}
	}
	return 0, false, fmt.Errorf("store agent %s: others change it all the time", def.Name)
}

// putAgent is one attempt; not done when somebody else was faster.
func (b *Bus) putAgent(ctx context.Context, name string, body []byte) (revision uint64, changed, done bool, err error) {
	last, ok, err := b.get(ctx, streamAgents, lookup{Last: agentPrefix + name})
	switch {
	case err != nil:
		return 0, false, false, err
	case ok && !isRemoved(last) && bytes.Equal(last.data, body):
		return last.seq, false, true, nil
	}
	m := &nats.Msg{Subject: agentPrefix + name, Header: nats.Header{}, Data: body}
	expect(m, last.seq)
	r, err := b.store(ctx, m)
	if refused(err, codeWrongLast) {
		return 0, false, false, nil
	}
	return r.Seq, true, err == nil, err
}

// isRemoved tells whether a message of a bucket marks that its key is gone.
func isRemoved(m stored) bool {
	return m.header.Get("KV-Operation") != "" || m.header.Get("Nats-Marker-Reason") != ""
}

// Agent is the current definition of an agent, at most two seconds old. The built-in ones are there unless the bucket has
// its own. With messages.ErrUnknownAgent come the names that there are.
func (b *Bus) Agent(ctx context.Context, name string) (messages.Definition, error) {
	if !messages.ValidToken(name) {
		return messages.Definition{}, fmt.Errorf("%w: the name is not valid", messages.ErrUnknownAgent)
	}
	if def, ok := b.agents.get(name); ok {
		return def, nil
	}
	// One read serves all that ask meanwhile: a worker may begin thousands of runs of an agent at once.
	read := b.agents.reading.DoChan(name, func() (any, error) { return b.loadAgent(context.WithoutCancel(ctx), name) })
	select {
	case r := <-read:
		def, _ := r.Val.(messages.Definition)
		return def, r.Err
	case <-ctx.Done():
		return messages.Definition{}, context.Cause(ctx)
	}
}

func (b *Bus) loadAgent(ctx context.Context, name string) (messages.Definition, error) {
	def, ok, err := b.readAgent(ctx, agentPrefix+name)
	switch {
	case err != nil:
		return messages.Definition{}, err
	case !ok:
		builtin := messages.BuiltinAgents()
		i := slices.IndexFunc(builtin, func(d messages.Definition) bool { return d.Name == name })
		if i < 0 {
			return messages.Definition{}, b.unknownAgent(ctx, name)
		}
		def = builtin[i]
	}
	b.agents.put(def)
	return def, nil
}

func (b *Bus) unknownAgent(ctx context.Context, name string) error {
	known, err := b.Agents(ctx)
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
func (b *Bus) readAgent(ctx context.Context, subject string) (def messages.Definition, ok bool, err error) {
	name := strings.TrimPrefix(subject, agentPrefix)
	m, ok, err := b.get(ctx, streamAgents, lookup{Last: subject})
	if err != nil {
		return def, false, fmt.Errorf("read agent %s: %w", name, err)
	}
	if !ok || isRemoved(m) {
		return def, false, nil
	}
	if err := messages.Decode(m.data, &def); err != nil {
		return def, false, fmt.Errorf("%w %s: %v", errBadAgent, name, err) //nolint:errorlint // not a field of who asks
	}
	if def.Name != name {
		return def, false, fmt.Errorf("%w %s: its name is %q", errBadAgent, name, messages.Clip(def.Name, 64))
	}
	def.SetDefaults()
	def.Revision = m.seq
	if err := def.Validate(); err != nil {
		return def, false, fmt.Errorf("%w %s: %v", errBadAgent, name, err) //nolint:errorlint // not a field of who asks
	}
	return def, true, nil
}

// Agents are all agents by name, the built-in ones among them unless the bucket has its own.
func (b *Bus) Agents(ctx context.Context) ([]messages.Definition, error) {
	var defs []messages.Definition
	for subject, err := range b.subjects(ctx, streamAgents, agentPrefix+"*") {
		if err != nil {
			return nil, fmt.Errorf("list agents: %w", err)
		}
		def, ok, err := b.readAgent(ctx, subject)
		if errors.Is(err, errBadAgent) { // one that cannot be read does not hide the others
			b.log.WarnContext(ctx, "agent skipped", "err", err)
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
