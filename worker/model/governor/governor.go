// Package governor keeps a whole fleet within the limits of its model providers: requests per minute, tokens per
// minute and calls in flight, for each model of each endpoint, with turns for every tenant that waits.
//
// Make one Governor per process with [New], put it around each endpoint with [Governor.Wrap], and call
// [Governor.Run]. The state is in Redis, where one script admits a call or says how long to wait. Without Redis each
// worker keeps to its share: the limit divided by the number of workers that were seen last.
//
// Limits hold over any minute, but for a burst of a tenth of them, and but for what went wrong: leases of a killed
// worker count until they expire, and calls that began before Redis was lost are not known to it afterwards.
package governor

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/worker/circuit"
)

// Defaults of a Config.
const (
	defaultPrefix  = "longshore"
	defaultMaxWait = 30 * time.Second
	defaultLease   = time.Minute
	defaultTimeout = 250 * time.Millisecond // an answer takes less than 1; later is as good as never
	defaultProbe   = time.Second
	heartbeat      = 10 * time.Second // of the worker; also how often leases are renewed
)

// Limits of one model of one endpoint, for the whole fleet. 0 is no limit.
type Limits struct {
	RPM, TPM, InFlight int // of all tenants together

	// Of each tenant, in addition to those.
	TenantRPM, TenantTPM, TenantInFlight int
}

func (l Limits) isNone() bool { return l == Limits{} }

// clean reads negative limits as none.
func (l Limits) clean() Limits {
	return Limits{
		max(l.RPM, 0), max(l.TPM, 0), max(l.InFlight, 0),
		max(l.TenantRPM, 0), max(l.TenantTPM, 0), max(l.TenantInFlight, 0),
	}
}

// Config of a Governor.
type Config struct {
	Redis  redis.UniversalClient               // obeys the deadline of a context; nil: every worker keeps to its share
	Limits func(provider, model string) Limits // asked before each call: quick and safe for concurrent use
	Worker string                              // name of this worker, unlike that of any other

	Prefix  string           // Of all keys, without braces. Default "longshore".
	MaxWait time.Duration    // Of a call for its turn. Default 30 s; negative: calls never wait.
	Lease   time.Duration    // A call of a killed worker counts as in flight for so long. Default 1 min, at least 30 s.
	Timeout time.Duration    // Of one operation of Redis. Default 250 ms.
	Probe   time.Duration    // How long a Redis that failed is left alone. Default 1 s.
	Log     *slog.Logger     // Told when Redis goes and comes back. Default: discards.
	Now     func() time.Time // Default: the time of Redis, so that clocks of workers need not agree.
}

// Governor governs the calls of one worker. Safe for concurrent use.
type Governor struct {
	config   Config
	circuit  *circuit.Circuit
	workers  atomic.Int64 // as seen last
	sayAlone func()
	down     chan struct{} // Redis went away

	mu     sync.Mutex // guards what follows
	queues map[caller]*queue
	live   map[*grant]struct{} // admitted by Redis and not settled
	share  map[owner]*bucket
	freed  chan struct{} // closed and replaced when a call ended here: there may be room in flight

	admitted, waited, waitNanos, refused, errors atomic.Uint64
}

// New returns a governor that knows of one worker, itself.
func New(c Config) (*Governor, error) {
	if c.Limits == nil {
		return nil, errors.New("make governor: Limits is missing")
	}
	setDefault(&c.Prefix, defaultPrefix)
	setDefault(&c.MaxWait, defaultMaxWait)
	setDefault(&c.Lease, defaultLease)
	setDefault(&c.Timeout, defaultTimeout)
	setDefault(&c.Probe, defaultProbe)
	c.Lease = max(c.Lease, 3*heartbeat) // a renewal may fail
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	g := &Governor{
		config: c, circuit: circuit.New(circuit.Config{First: c.Probe}),
		queues: map[caller]*queue{}, live: map[*grant]struct{}{}, share: map[owner]*bucket{}, freed: make(chan struct{}),
		down: make(chan struct{}, 1),
	}
	g.workers.Store(1)
	g.sayAlone = sync.OnceFunc(func() { c.Log.Warn("model governor has no redis: limits are this worker's alone") })
	return g, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Stats count since New.
type Stats struct {
	Admitted uint64        // Calls that were let through.
	Waited   uint64        // Admitted model calls that waited for their turn.
	Waiting  time.Duration // The time that all calls waited.
	Refused  uint64        // Calls that would have waited too long.
	Errors   uint64        // Operations that Redis failed or refused.
	Degraded bool          // Redis is away: this worker keeps to its share.
	Workers  int           // As seen last.
}

// Stats may be called at any time.
func (g *Governor) Stats() Stats {
	return Stats{
		Admitted: g.admitted.Load(), Waited: g.waited.Load(), Refused: g.refused.Load(), Errors: g.errors.Load(),
		Waiting:  time.Duration(g.waitNanos.Load()),
		Degraded: g.config.Redis == nil || !g.circuit.IsClosed(), Workers: int(g.workers.Load()),
	}
}
