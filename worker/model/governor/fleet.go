package governor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/worker/circuit"
)

const (
	maxQueue = 1024            // tenants that wait for one pool
	recheck  = time.Second     // a caller that waits asks at least so often
	hold     = 3 * recheck     // a tenant without requests for so long has left
	keyTTL   = 5 * time.Minute // of every key after its last change; times reach at most 3 minutes ahead
)

// errDown says that Redis failed lately and was not asked.
var errDown = errors.New("redis is down")

// answer is the reply to a call that wants to begin.
type answer struct {
	admitted bool
	wait     time.Duration // until it is worth asking again
	why      string        // what it waits for
	full     bool          // it cannot even wait
}

// do asks Redis once, within the timeout, or returns errDown at once, and tells the circuit how it went.
func (g *Governor) do(ctx context.Context, operation func(context.Context) error) error {
	if g.config.Redis == nil {
		return errDown
	}
	pass, ok := g.circuit.Enter()
	if !ok {
		return errDown
	}
	within, cancel := context.WithTimeout(ctx, g.config.Timeout)
	defer cancel()
	err := operation(within)
	switch {
	case err == nil:
		g.isUp(pass)
		return nil
	case ctx.Err() != nil: // a caller that gave up says nothing about Redis
		g.circuit.Withdraw(pass)
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		g.isUp(pass)
	default:
		if g.circuit.Fail(pass, circuit.Failure{}) {
			g.config.Log.WarnContext(ctx, "model governor has no redis: this worker keeps to its share of the limits",
				"err", err, "workers", g.workers.Load())
			select {
			case g.down <- struct{}{}: // Run watches it from now on
			default:
			}
		}
	}
	g.errors.Add(1)
	return fmt.Errorf("ask redis: %w", err)
}

func (g *Governor) isUp(pass circuit.Pass) {
	if g.circuit.Succeed(pass) {
		g.config.Log.Info("model governor has redis again: limits are the fleet's")
	}
}

// now is the first argument of the scripts: empty for the time of Redis.
func (g *Governor) now() string {
	if g.config.Now == nil {
		return ""
	}
	return micros(g.config.Now().Sub(time.Unix(0, 0)))
}

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// ask asks the fleet for a permit.
func (g *Governor) ask(ctx context.Context, c *call) (answer, error) {
	var out answer
	err := g.do(ctx, func(ctx context.Context) error {
		l := c.limits
		got, err := admitScript.Run(ctx, g.config.Redis, g.keys(c.caller),
			g.now(), c.caller.tenant, c.lease, micros(g.config.Lease), c.tokens, maxQueue, micros(hold), keyTTL.Milliseconds(),
			l.RPM, l.TPM, l.InFlight, l.TenantRPM, l.TenantTPM, l.TenantInFlight).Slice()
		if err != nil {
			return err
		}
		out, err = readAnswer(got)
		return err
	})
	return out, err
}

func readAnswer(got []any) (answer, error) {
	if len(got) != 3 {
		return answer{}, errors.New("the script's answer is not one")
	}
	verdict, ok1 := got[0].(int64)
	wait, ok2 := got[1].(int64)
	why, ok3 := got[2].(string)
	if !ok1 || !ok2 || !ok3 {
		return answer{}, errors.New("the script's answer is not one")
	}
	d := time.Duration(min(max(wait, 0), time.Hour.Microseconds())) * time.Microsecond
	return answer{admitted: verdict == 1, wait: d, why: why, full: verdict < 0}, nil
}

// leave gives up the tenant's place in the queue. What cannot be sent is forgotten within three seconds.
func (g *Governor) leave(ctx context.Context, at caller) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.config.Timeout)
	defer cancel()
	k := g.keys(at)
	_ = g.do(ctx, func(ctx context.Context) error {
		return leaveScript.Run(ctx, g.config.Redis, k[4:6], at.tenant).Err()
	})
}

// settle tells the fleet that a call has ended. What cannot be said ends with the lease.
func (g *Governor) settle(ctx context.Context, c *call, used int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.config.Timeout)
	defer cancel()
	k := g.keys(c.caller)
	_ = g.do(ctx, func(ctx context.Context) error {
		return settleScript.Run(ctx, g.config.Redis, k[:4], g.now(), c.lease, c.tokens, used, keyTTL.Milliseconds(),
			c.limits.TPM, c.limits.TenantTPM).Err()
	})
}
