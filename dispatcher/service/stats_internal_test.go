package service

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/webhooks"
	"github.com/longshore-run/longshore/messages/runlog"
)

// receiver is a Sender whose webhooks come to this end.
type receiver struct{ err error }

func (*receiver) Check(*messages.Webhook) error { return nil }

func (r *receiver) Send(context.Context, *messages.WebhookJob) error { return r.err }

func TestStatsOfWebhooks(t *testing.T) {
	to := &receiver{}
	s := New(Config{
		Webhooks: to, WebhookTries: []time.Duration{time.Hour}, Log: slog.New(slog.DiscardHandler),
		Controller: &runlog.Controller{Now: time.Now},
	})
	job := webhooks.Delivery{WebhookJob: messages.WebhookJob{Tenant: "acme", URL: "https://example.com/"}, Queued: time.Now(), Delivered: 1}
	if _, done := s.deliver(t.Context(), job); !done {
		t.Error("it is not done")
	}
	to.err = &messages.WebhookError{Reason: "503"}
	if _, done := s.deliver(t.Context(), job); done {
		t.Error("it is done")
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	s.deliver(stopped, job) // nobody knows what became of it
	if got, want := s.Stats(), (Stats{WebhooksDelivered: 1, WebhooksFailed: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
