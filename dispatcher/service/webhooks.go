package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/webhooks"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Sender delivers webhooks.
type Sender interface {
	// Check reports whether an address may be called, as far as it says; the error is a *messages.FieldError.
	Check(w *messages.Webhook) error
	// Send makes one attempt, bounded in time. The error is a *messages.WebhookError.
	Send(ctx context.Context, j *messages.WebhookJob) error
}

const (
	// How many webhooks one dispatcher delivers at once, and how many of them to one host.
	webhooksTogether = 32
	webhooksPerHost  = 4
	// Of one tenant: who has many slow receivers leaves places to others.
	webhooksPerTenant = 24
	// A job whose dispatcher was killed is handed out again after this; longer than an attempt.
	defaultWebhookWait = 30 * time.Second
	// When the host of a job is busy it comes again soon, and later the more often that happens.
	busyHost    = 2 * time.Second
	maxBusyHost = 5 * time.Minute
	// A job is tried so often at least, however old it is: the dispatchers may all have been away.
	minWebhookTries = 3
	// How often a burial that failed is tried again.
	deadLetterAgain = 5 * time.Second
)

// defaultWebhookTries is when attempts after the first are made, counted from the time that a job was stored.
func defaultWebhookTries() []time.Duration {
	return []time.Duration{
		10 * time.Second, 40 * time.Second, 3 * time.Minute, 15 * time.Minute, time.Hour,
		2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour, 18 * time.Hour, 24 * time.Hour,
	}
}

// checkWebhook refuses a webhook that would never be delivered.
func (s *Service) checkWebhook(w *messages.Webhook) error {
	switch {
	case w == nil:
		return nil
	case s.cfg.Webhooks == nil:
		return &messages.FieldError{Field: "webhook", Reason: noWebhooks}
	default:
		return s.cfg.Webhooks.Check(w)
	}
}

const noWebhooks = "this fleet sends no webhooks: its operator sets LONGSHORE_WEBHOOK_SECRET"

// runEnded does what the end of a run asks for. All of it may be done twice.
func (s *Service) runEnded(ctx context.Context, e events.RunEnd) error {
	batch, maybe := messages.BatchOf(e.Run)
	if !maybe && !e.HasWebhook() {
		return nil
	}
	d, ok := e.Finished()
	if !ok {
		s.cfg.Bus.Foreign()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var err error
	if maybe {
		err = s.takeEnd(ctx, batch, &d.Result)
	}
	if d.Webhook {
		err = errors.Join(err, s.tellRun(ctx, e, d.Result.Status))
	}
	return err
}

// tellRun queues the webhook of a run. Its address is not in the event, which anybody may see, so it is read from the
// run's first record.
func (s *Service) tellRun(ctx context.Context, e events.RunEnd, status messages.Status) error {
	task, err := s.task(ctx, e.Run, false)
	switch {
	case errors.Is(err, runlog.ErrNotFound): // its log is gone
		return nil
	case err != nil:
		return err
	case !task.Webhook.Wants(string(status)):
		return nil
	}
	return s.queueWebhook(ctx, messages.RunWebhook(e.Run, task.Webhook.URL, e.Event))
}

// webhookOf is what became of the webhook of a run that has ended; nil when that end is not told.
func (s *Service) webhookOf(ctx context.Context, run messages.Ref, status messages.Status) (*control.WebhookState, error) {
	task, err := s.task(ctx, run, false)
	switch {
	case errors.Is(err, runlog.ErrNotFound): // its log has gone in this moment
		return nil, nil
	case err != nil:
		return nil, err
	case !task.Webhook.Wants(string(status)):
		return nil, nil
	}
	return s.stores.webhooks.State(ctx, run)
}

// tellBatch queues the webhook of a batch that has ended, and then notes that it is.
func (s *Service) tellBatch(ctx context.Context, head *messages.Batch, revision uint64) error {
	if head.Webhook.Wants(string(head.Status)) {
		event := head.Finished()
		body, err := json.Marshal(&event)
		if err != nil {
			return fmt.Errorf("encode the end of batch %s: %w", head.ID, err)
		}
		if err := s.queueWebhook(ctx, messages.BatchWebhook(head.BatchRef, head.Status, head.Webhook.URL, body)); err != nil {
			return err
		}
	}
	head.Cursor.Tell = false
	_, err := s.stores.batches.Put(ctx, head, revision)
	return err
}

func (s *Service) queueWebhook(ctx context.Context, j messages.WebhookJob) error {
	if s.cfg.Webhooks == nil { // a task that came past the door
		return s.deadLetterWebhook(ctx, &j, &messages.WebhookError{Reason: noWebhooks}, 0)
	}
	return s.stores.webhooks.Put(ctx, &j, 0)
}

func (s *Service) deadLetterWebhook(ctx context.Context, j *messages.WebhookJob, why error, attempts int) error {
	body, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode webhook: %w", err)
	}
	return s.stores.letters.PutWebhook(ctx, j, messages.Dead{
		Error:   messages.RunError{Code: messages.CodeWebhookFailed, Message: why.Error()},
		Subject: j.Subject(), Task: body, Attempts: attempts, Time: s.cfg.Controller.Now(),
	})
}

// keepDelivering delivers webhooks until ctx ends.
func (s *Service) keepDelivering(ctx context.Context) error {
	if s.cfg.Webhooks == nil {
		return nil
	}
	return s.stores.webhooks.Run(ctx, webhooks.Work{
		Together: webhooksTogether, AckWait: s.cfg.WebhookWait, Deliver: s.deliver,
	})
}

// deliver makes one attempt, and says when the next one is, if any.
func (s *Service) deliver(ctx context.Context, d webhooks.Delivery) (again time.Duration, done bool) {
	host := hostOf(d.URL)
	if !s.calling.enter(host, d.Tenant) {
		return jitter(min(busyHost<<min(d.Delivered, 10), maxBusyHost)), false
	}
	err := s.cfg.Webhooks.Send(ctx, &d.WebhookJob)
	s.calling.leave(host, d.Tenant)
	if err == nil {
		s.sent.delivered.Add(1)
		return 0, true
	}
	if ctx.Err() != nil { // another dispatcher goes on
		return 0, false
	}
	s.sent.failed.Add(1)
	log := s.cfg.Log.With("tenant", d.Tenant, "of", string(d.Of), "name", d.Name, "host", host, "attempt", d.Delivered)
	if again, more := s.nextTry(&d, err); more {
		log.InfoContext(ctx, "webhook not delivered", "err", err, "again", again.String())
		return again, false
	}
	if err := s.deadLetterWebhook(ctx, &d.WebhookJob, err, d.Delivered); err != nil {
		log.WarnContext(ctx, "dead-letter a webhook", "err", err)
		return deadLetterAgain, false
	}
	s.sent.givenUp.Add(1)
	log.WarnContext(ctx, "webhook given up", "err", err)
	return 0, true
}

// nextTry is the time until the next attempt. Attempts are made at times that count from when the job was stored, so
// that a job which only waited for a busy host has lost none.
func (s *Service) nextTry(d *webhooks.Delivery, err error) (again time.Duration, more bool) {
	failure, ok := errors.AsType[*messages.WebhookError](err)
	if !ok {
		failure = &messages.WebhookError{}
	}
	if failure.Final {
		return 0, false
	}
	age := s.cfg.Controller.Now().Sub(d.Queued)
	for _, at := range s.cfg.WebhookTries {
		if at > age {
			return max(jitter(at-age), failure.After), true
		}
	}
	if d.Delivered < minWebhookTries && len(s.cfg.WebhookTries) > 0 {
		return max(jitter(s.cfg.WebhookTries[0]), failure.After), true
	}
	return 0, false
}

// jitter is up to a tenth more, so that what failed together does not come together again.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/10+1)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
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
	if c.at[host] >= webhooksPerHost || c.of[tenant] >= webhooksPerTenant {
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
