package governor

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
)

// pool is what limits are kept for.
type pool struct{ provider, model string }

// caller names the calls of one tenant to one pool.
type caller struct {
	pool   pool
	tenant string
}

// All keys of a pool have it in braces, so that a cluster keeps them in one slot. Names are escaped: a model is called
// what its provider likes, braces too.

func (g *Governor) poolKey(p pool) string {
	return g.config.Prefix + ":governor:{" + url.QueryEscape(p.provider) + "/" + url.QueryEscape(p.model) + "}"
}

// keys are those of the scripts, in their order.
func (g *Governor) keys(at caller) []string {
	k := g.poolKey(at.pool)
	t := k + ":tenant:" + url.QueryEscape(at.tenant)
	return []string{k, k + ":leases", t, t + ":leases", k + ":line", k + ":seen", k + ":tags"}
}

// workersKey is the set of workers that live.
func (g *Governor) workersKey() string { return g.config.Prefix + ":governor:workers" }

// leaseID names a call in Redis. It depends only on run and step, so that a worker that repeats the step of a killed worker takes
// its lease over.
func leaseID(key string) string {
	switch {
	case key == "":
		return rand.Text()
	case len(key) > maxLease:
		sum := sha256.Sum256([]byte(key))
		return hex.EncodeToString(sum[:])
	default:
		return key
	}
}

const maxLease = 256 // bytes
