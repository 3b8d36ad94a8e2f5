// Package replycache answers a request to a model with the reply that the same request got before. Make one Cache per
// process with [New] and put it around each endpoint with [Cache.Wrap].
//
// Only requests that ask for it (Request.Cache) and have temperature 0 are looked up, and only whole replies are
// stored: in Redis, under a hash of all that the model is asked. Tenants never share a reply. A hit costs nothing and
// is marked as Cached with zero usage. Nothing depends on the cache: whatever fails is a miss.
package replycache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/circuit"
	"github.com/longshore-run/longshore/worker/model"
)

// Defaults of a Config.
const (
	defaultPrefix  = "longshore"
	defaultTTL     = time.Hour
	defaultTimeout = 250 * time.Millisecond
	defaultProbe   = time.Second
)

// Config of a Cache.
type Config struct {
	Redis   redis.UniversalClient // obeys the deadline of a context
	Prefix  string                // Of all keys. Default "longshore".
	TTL     time.Duration         // Of a reply, from when it was stored. Default 1 h.
	Timeout time.Duration         // Of one operation of Redis. Default 250 ms.
	Probe   time.Duration         // How long a Redis that failed is left alone. Default 1 s.
	Redact  func(string) string   // A reply with text that it changes is not stored. Default: none.
	Sealer  Sealer                // Of the values. Default: they are in the clear.
	Log     *slog.Logger          // Told when Redis goes and comes back. Default: discards.
}

// Sealer encrypts values with a key of the tenant. Safe for concurrent use.
type Sealer interface {
	// Seal encrypts plain and binds it to where it stands. It may return plain as it is, when nothing is to be encrypted.
	Seal(ctx context.Context, tenant string, plain, at []byte) ([]byte, error)
	// Open undoes Seal; it fails when anything is not as it was. What was never sealed it returns as it is, or refuses.
	Open(ctx context.Context, tenant string, value, at []byte) ([]byte, error)
}

// sealRoom is what sealing may add to a value, in bytes.
const sealRoom = 64

// place is what a sealed reply is bound to: its question, which names the tenant too.
func place(name string) []byte { return []byte("longshore reply 1\n" + name) }

// Cache keeps replies. Safe for concurrent use.
type Cache struct {
	config  Config
	circuit *circuit.Circuit

	hits, misses, stores, errors atomic.Uint64
}

// New returns a cache.
func New(c Config) (*Cache, error) {
	if c.Redis == nil {
		return nil, errors.New("make reply cache: Redis is missing")
	}
	if c.TTL < 0 || c.Timeout < 0 || c.Probe < 0 {
		return nil, errors.New("make reply cache: TTL, Timeout, Probe: must not be negative")
	}
	setDefault(&c.Prefix, defaultPrefix)
	setDefault(&c.TTL, defaultTTL)
	setDefault(&c.Timeout, defaultTimeout)
	setDefault(&c.Probe, defaultProbe)
	if c.Redact == nil {
		c.Redact = func(s string) string { return s }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Cache{config: c, circuit: circuit.New(circuit.Config{First: c.Probe})}, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Stats count since New. Requests that do not ask for the cache count nowhere.
type Stats struct {
	Hits   uint64 // Requests that were answered.
	Misses uint64 // All others.
	Stores uint64 // Replies written.
	Errors uint64 // Operations that Redis failed, and values that were not replies.
	Up     bool   // Redis is asked. It is true before the first operation.
}

// Stats may be called at any time.
func (c *Cache) Stats() Stats {
	return Stats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Stores: c.stores.Load(), Errors: c.errors.Load(), Up: c.circuit.IsClosed(),
	}
}

// cached is an endpoint that is asked what the cache does not know.
type cached struct {
	cache    *Cache
	endpoint string
	provider model.Provider
}

var _ model.Provider = (*cached)(nil)

// Wrap puts the cache around the endpoint of that name. It belongs outside of a governor: a hit takes nothing of any
// limit.
func (c *Cache) Wrap(provider string, p model.Provider) model.Provider {
	return &cached{c, provider, p}
}

// Stream implements model.Provider. A hit is one Delta with the Reply.
func (p *cached) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	if !r.Cache || r.Temperature == nil || *r.Temperature != 0 {
		return p.provider.Stream(ctx, r)
	}
	return func(yield func(model.Delta, error) bool) {
		if ctx.Err() != nil {
			yield(model.Delta{}, context.Cause(ctx))
			return
		}
		name, err := hash(p.endpoint, &r)
		if err != nil { // the provider will say what is wrong with the request
			p.provider.Stream(ctx, r)(yield)
			return
		}
		key := p.cache.key(r.Tenant, name)
		if reply, ok := p.cache.load(ctx, r.Tenant, key, name); ok {
			yield(model.Delta{Reply: reply}, nil)
			return
		}
		for d, err := range p.provider.Stream(ctx, r) {
			if err == nil && d.Reply != nil {
				p.cache.save(ctx, r.Tenant, key, name, d.Reply, r.Keep)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func (c *Cache) load(ctx context.Context, tenant, key, name string) (*model.Reply, bool) {
	var data []byte
	err := c.do(ctx, func(ctx context.Context) (err error) {
		// One byte more than may be there, and no more than that, whatever is there.
		data, err = c.config.Redis.GetRange(ctx, key, 0, MaxValue+sealRoom).Bytes()
		return err
	})
	if err != nil || len(data) == 0 {
		c.misses.Add(1)
		return nil, false
	}
	reply, err := c.read(ctx, tenant, name, data)
	if err != nil {
		c.errors.Add(1) // Redis itself is well
		c.misses.Add(1)
		return nil, false
	}
	c.hits.Add(1)
	return reply, true
}

// read is the reply of a stored value.
func (c *Cache) read(ctx context.Context, tenant, name string, data []byte) (*model.Reply, error) {
	if c.config.Sealer != nil {
		var err error
		if data, err = c.config.Sealer.Open(ctx, tenant, data, place(name)); err != nil {
			return nil, fmt.Errorf("open a sealed reply: %w", err)
		}
	}
	return decode(name, data)
}

// save keeps a reply, if it is fit to be used again, and those who ask let it be kept.
func (c *Cache) save(ctx context.Context, tenant, key, name string, r *model.Reply, keep func(string) bool) {
	if r.Cached || holds(r.Message.Content, func(s string) bool { return c.config.Redact(s) != s || keep != nil && !keep(s) }) {
		return
	}
	data, err := encode(name, r)
	if err == nil && c.config.Sealer != nil {
		data, err = c.config.Sealer.Seal(ctx, tenant, data, place(name))
	}
	if err != nil {
		return
	}
	err = c.do(ctx, func(ctx context.Context) error { return c.config.Redis.Set(ctx, key, data, c.config.TTL).Err() })
	if err == nil {
		c.stores.Add(1)
	}
}

// holds reports whether any text of blocks, or all of them together, is one that must not be kept.
func holds(blocks []messages.Block, secret func(string) bool) bool {
	for _, b := range blocks {
		if secret(b.Text) || b.Reasoning != nil && secret(b.Reasoning.Text) || b.ToolCall != nil && secret(b.ToolCall.Arguments) {
			return true
		}
	}
	all := messages.Message{Content: blocks}
	return secret(all.Text())
}

// errDown says that Redis failed lately and was not asked.
var errDown = errors.New("redis is down")

// do asks Redis once, within the timeout, or returns errDown at once, and tells the circuit how it went.
func (c *Cache) do(ctx context.Context, operation func(context.Context) error) error {
	pass, ok := c.circuit.Enter()
	if !ok {
		return errDown
	}
	within, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	err := operation(within)
	switch {
	case err == nil:
		c.isUp(pass)
		return nil
	case ctx.Err() != nil: // a caller that gave up says nothing about Redis
		c.circuit.Withdraw(pass)
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		c.isUp(pass)
	default:
		if c.circuit.Fail(pass, circuit.Failure{}) {
			c.config.Log.WarnContext(ctx, "reply cache is down", "err", err)
		}
	}
	c.errors.Add(1)
	return fmt.Errorf("ask redis: %w", err)
}

func (c *Cache) isUp(pass circuit.Pass) {
	if c.circuit.Succeed(pass) {
		c.config.Log.Info("reply cache is up again")
	}
}
