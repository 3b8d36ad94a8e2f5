// Package webhooks queues and delivers the webhooks of runs and batches that have ended.
package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/webhooks"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Config is what Webhooks works with.
type Config struct {
	Sender  Sender // nil: tasks with a webhook are refused
	Queue   *webhooks.Queue
	Letters *deadletters.Store
	Runs    *runs.Runs
	Now     func() time.Time
	Log     *slog.Logger

	Tries []time.Duration // of attempts after the first, since the end of the run; default over a day
	Wait  time.Duration   // until the webhook of a dispatcher that was killed is taken up; default 30 s
}

// Webhooks queues and delivers the webhooks of runs and batches that have ended.
type Webhooks struct {
	cfg     Config
	calling calls
	sent    counts
}

// New returns Webhooks.
func New(cfg Config) *Webhooks {
	if cfg.Tries == nil {
		cfg.Tries = defaultTries()
	}
	if cfg.Wait == 0 {
		cfg.Wait = defaultWait
	}
	return &Webhooks{cfg: cfg}
}

const noWebhooks = "this fleet sends no webhooks: its operator sets LONGSHORE_WEBHOOK_SECRET"

// Sender delivers webhooks.
type Sender interface {
	// Check reports whether an address may be called, as far as it says; the error is a *messages.FieldError.
	Check(w *messages.Webhook) error
	// Send makes one attempt, bounded in time. The error is a *messages.WebhookError.
	Send(ctx context.Context, j *messages.WebhookJob) error
}

const (
	// How many webhooks one dispatcher delivers at once, and how many of them to one host.
	together = 32
	perHost  = 4
	// Of one tenant: one with many slow receivers leaves room for others.
	perTenant = 24
	// A job whose dispatcher was killed is handed out again after this; longer than an attempt.
	defaultWait = 30 * time.Second
	// When the host of a job is busy it comes again soon, and later the more often that happens.
	busyHost    = 2 * time.Second
	maxBusyHost = 5 * time.Minute
	// A job is tried so often at least, however old it is: the dispatchers may all have been away.
	minTries = 3
	// How often dead-lettering is tried again when it failed.
	deadLetterAgain = 5 * time.Second
)

// defaultTries is when attempts after the first are made, counted from the time that a job was stored.
func defaultTries() []time.Duration {
	return []time.Duration{
		10 * time.Second, 40 * time.Second, 3 * time.Minute, 15 * time.Minute, time.Hour,
		2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour, 18 * time.Hour, 24 * time.Hour,
	}
}

// Check refuses a webhook that would never be delivered.
func (ws *Webhooks) Check(w *messages.Webhook) error {
	if w == nil {
		return nil
	}
	if err := ws.Enabled(); err != nil {
		return err
	}
	return ws.cfg.Sender.Check(w)
}

// Enabled returns a *messages.FieldError if this dispatcher delivers no webhooks.
func (ws *Webhooks) Enabled() error {
	if ws.cfg.Sender == nil {
		return &messages.FieldError{Field: "webhook", Reason: noWebhooks}
	}
	return nil
}

// RunEnded queues the webhook of a run. Its address is not in the event, which any client may see, so it is read from the
// run's first record.
func (ws *Webhooks) RunEnded(ctx context.Context, e events.RunEnd, status messages.Status) error {
	task, err := ws.cfg.Runs.Task(ctx, e.Run, false)
	switch {
	case errors.Is(err, runlog.ErrNotFound): // its log is gone
		return nil
	case err != nil:
		return err
	case !task.Webhook.Wants(string(status)):
		return nil
	}
	return ws.Enqueue(ctx, messages.RunWebhook(e.Run, task.Webhook.URL, e.Event))
}

// Redeliver has a webhook that became a dead letter delivered again, as the same delivery. Letter is its sequence.
func (ws *Webhooks) Redeliver(ctx context.Context, j *messages.WebhookJob, letter uint64) error {
	return ws.cfg.Queue.Put(ctx, j, letter)
}

// Enqueue has a webhook delivered. A fleet that delivers none keeps it as a dead letter, which says so.
func (ws *Webhooks) Enqueue(ctx context.Context, j messages.WebhookJob) error {
	if ws.cfg.Sender == nil { // a task that was not admitted by a dispatcher
		return ws.deadLetter(ctx, &j, &messages.WebhookError{Reason: noWebhooks}, 0)
	}
	return ws.cfg.Queue.Put(ctx, &j, 0)
}

func (ws *Webhooks) deadLetter(ctx context.Context, j *messages.WebhookJob, why error, attempts int) error {
	body, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode webhook: %w", err)
	}
	return ws.cfg.Letters.PutWebhook(ctx, j, messages.Dead{
		Error:   messages.RunError{Code: messages.CodeWebhookFailed, Message: why.Error()},
		Subject: j.Subject(), Task: body, Attempts: attempts, Time: ws.cfg.Now(),
	})
}

// Run delivers webhooks until ctx ends.
func (ws *Webhooks) Run(ctx context.Context) error {
	if ws.cfg.Sender == nil {
		return nil
	}
	return ws.cfg.Queue.Run(ctx, webhooks.Work{
		Together: together, AckWait: ws.cfg.Wait, Deliver: ws.deliver,
	})
}

// deliver makes one attempt, and says when the next one is, if any.
func (ws *Webhooks) deliver(ctx context.Context, d webhooks.Delivery) (again time.Duration, done bool) {
	to, host := endpoint(d.URL), Host(d.URL)
	if !ws.calling.enter(to, d.Tenant) {
		return jitter(min(busyHost<<min(d.Delivered, 10), maxBusyHost)), false
	}
	err := ws.cfg.Sender.Send(ctx, &d.WebhookJob)
	ws.calling.leave(to, d.Tenant)
	if err == nil {
		ws.sent.delivered.Add(1)
		return 0, true
	}
	if ctx.Err() != nil { // another dispatcher continues
		return 0, false
	}
	ws.sent.failed.Add(1)
	log := ws.cfg.Log.With("tenant", d.Tenant, "of", string(d.Of), "name", d.Name, "host", host, "attempt", d.Delivered)
	if again, more := ws.nextTry(&d, err); more {
		log.InfoContext(ctx, "webhook not delivered", "err", err, "again", again.String())
		return again, false
	}
	if err := ws.deadLetter(ctx, &d.WebhookJob, err, d.Delivered); err != nil {
		log.WarnContext(ctx, "dead-letter a webhook", "err", err)
		return deadLetterAgain, false
	}
	ws.sent.givenUp.Add(1)
	log.WarnContext(ctx, "webhook given up", "err", err)
	return 0, true
}

// nextTry is the time until the next attempt. Attempts are made at times that count from when the job was stored, so
// that a job which only waited for a busy host has lost none.
func (ws *Webhooks) nextTry(d *webhooks.Delivery, err error) (again time.Duration, more bool) {
	failure, ok := errors.AsType[*messages.WebhookError](err)
	if !ok {
		failure = &messages.WebhookError{}
	}
	if failure.Final {
		return 0, false
	}
	age := ws.cfg.Now().Sub(d.Queued)
	for _, at := range ws.cfg.Tries {
		if at > age {
			return max(jitter(at-age), failure.After), true
		}
	}
	if d.Delivered < minTries && len(ws.cfg.Tries) > 0 {
		return max(jitter(ws.cfg.Tries[0]), failure.After), true
	}
	return 0, false
}

// jitter is up to a tenth more, so that what failed together does not come together again.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/10+1)
}

// Host is the host of an address, with its port; empty if it has none.
func Host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// endpoint is what is called at an address, however that is written.
func endpoint(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return hosts.Endpoint(u)
}

// calls counts the webhooks that are being delivered to each host, and of each tenant. The zero value is ready.
type calls struct {
	mu sync.Mutex
	at map[string]int
	of map[string]int // by tenant
}

// enter is false when the host or the tenant has enough of them.
func (c *calls) enter(host, tenant string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at[host] >= perHost || c.of[tenant] >= perTenant {
		return false
	}
	if c.at == nil {
		c.at, c.of = map[string]int{}, map[string]int{}
	}
	c.at[host]++
	c.of[tenant]++
	return true
}

func (c *calls) leave(host, tenant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at[host]--; c.at[host] == 0 {
		delete(c.at, host)
	}
	if c.of[tenant]--; c.of[tenant] == 0 {
		delete(c.of, tenant)
	}
}
