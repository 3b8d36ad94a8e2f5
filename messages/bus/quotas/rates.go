package quotas

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	rateWait = 2 * time.Second

	secondsAMinute = 60

	kindSubmits = "submits"
	kindStarts  = "starts"
	kindCalls   = "calls"
)

// maxTurnAhead bounds the search for a minute in which a task may begin, in minutes.
const maxTurnAhead = 60

func rateSubject(tenant, kind string, minute int64) string {
	return "rates." + tenant + "." + kind + "." + strconv.FormatInt(minute, 10)
}

func minuteOf(t time.Time) int64 { return t.Unix() / secondsAMinute }

// CountSubmit counts a submit of the tenant in the minute of now, and returns which one it is. It is tried once: an error
// says that it may not have been counted.
func (qs *Quotas) CountSubmit(ctx context.Context, tenant string, now time.Time) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, rateWait)
	defer cancel()
	return qs.increment(ctx, rateSubject(tenant, kindSubmits, minuteOf(now)))
}

// increment adds one to a counter, and returns its value. It is tried once: after an error it may have been added.
func (qs *Quotas) increment(ctx context.Context, subject string) (int, error) {
	answer, err := qs.bus.Conn().RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Header: nats.Header{bus.HeaderIncrement: {"+1"}}})
	if err != nil {
		return 0, err
	}
	if err := bus.PublishOutcome(answer); err != nil {
		return 0, err
	}
	n, err := bus.Counted(answer.Data)
	return int(n), err
}

// Submits is how many were counted in the minute of now.
func (qs *Quotas) Submits(ctx context.Context, tenant string, now time.Time) (int, error) {
	m, ok, err := qs.bus.Stream(bus.StreamRates).Get(ctx, bus.Lookup{Last: rateSubject(tenant, kindSubmits, minuteOf(now))})
	if err != nil || !ok {
		return 0, err
	}
	n, err := bus.Counted(m.Data)
	return int(n), err
}

// Spent is what the model calls of a tenant have cost in the day and month of now, as Spending says.
func (qs *Quotas) Spent(ctx context.Context, tenant string, now time.Time) (today, month float64, err error) {
	return qs.spending.Spent(ctx, tenant, now)
}

// Turn says when a task of a tenant that may begin perMinute tasks in a minute may begin; the zero time: now. The task was
// published at a time by the clock of the stream. Not sure: no place was found within an hour, and it must ask again then,
// as one that was published then.
//
// A task has its turn in the minute in which it was published, as if it had been counted then. When more were published in
// that minute, it takes a place in the first minute from now on that has one; that place is its own.
func (qs *Quotas) Turn(ctx context.Context, tenant string, perMinute int, published, now time.Time) (at time.Time, sure bool, err error) {
	if !strict.ValidToken(tenant) || perMinute < 1 {
		return at, false, errors.New("take a turn: of no tenant, or of none")
	}
	rate := queue.Rate{Limit: perMinute, Window: time.Minute}
	count := func(ctx context.Context, _ *queue.Rate, minute int64) (int, error) {
		return qs.count(ctx, rateSubject(tenant, kindStarts, minute))
	}
	this := rate.Index(now)
	if then := rate.Index(published); then < this {
		n, err := count(ctx, &rate, then)
		if err != nil {
			return at, false, fmt.Errorf("take a turn of tenant %s: %w", tenant, err)
		}
		if n <= perMinute {
			return at, true, nil
		}
	}
	turn, sure, err := queue.Reserve(ctx, []queue.Rate{rate}, now, rate.Start(this+maxTurnAhead), count)
	switch {
	case err != nil:
		return at, false, fmt.Errorf("take a turn of tenant %s: %w", tenant, err)
	case sure && rate.Index(turn) == this:
		return at, true, nil
	default:
		return turn, sure, nil
	}
}

// CountCall is a queue.Count of tool calls, fleet-wide.
func (qs *Quotas) CountCall(ctx context.Context, r *queue.Rate, window int64) (int, error) {
	if !validRateKey(r.Key) {
		return 0, fmt.Errorf("count a call of rate %q: the key is not valid", strict.Shown(r.Key))
	}
	// No tenant's name has a colon, so its tasks are counted elsewhere.
	subject := fmt.Sprintf("rates.%s.%s.%d-%d", r.Key, kindCalls, r.Window/time.Second, window)
	n, err := qs.count(ctx, subject)
	if err != nil {
		return 0, fmt.Errorf("count a call of rate %s: %w", r.Key, err)
	}
	return n, nil
}

// validRateKey reports whether a key is tokens between colons, of which there is one at least.
func validRateKey(key string) bool {
	if !strings.Contains(key, ":") {
		return false
	}
	for part := range strings.SplitSeq(key, ":") {
		if !strict.ValidToken(part) {
			return false
		}
	}
	return true
}

// count is increment until it succeeds. What was counted and not answered is counted again.
func (qs *Quotas) count(ctx context.Context, subject string) (n int, err error) {
	err = qs.bus.Retry(ctx, func(ctx context.Context) (err error) {
		n, err = qs.increment(ctx, subject)
		return err
	})
	return n, err
}
