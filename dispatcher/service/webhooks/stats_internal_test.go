package webhooks

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/webhooks"
)

// receiver is a Sender whose webhooks come to this end.
type receiver struct{ err error }

func (*receiver) Check(*messages.Webhook) error { return nil }

func (r *receiver) Send(context.Context, *messages.WebhookJob) error { return r.err }

func TestStatsOfWebhooks(t *testing.T) {
	to := &receiver{}
	ws := New(Config{
		Sender: to, Tries: []time.Duration{time.Hour}, Log: slog.New(slog.DiscardHandler),
		Now: time.Now,
	})
	job := webhooks.Delivery{WebhookJob: messages.WebhookJob{Tenant: "acme", URL: "https://example.com/"}, Queued: time.Now(), Delivered: 1}
	if _, done := ws.deliver(t.Context(), job); !done {
		t.Error("it is not done")
	}
	to.err = &messages.WebhookError{Reason: "503"}
	if _, done := ws.deliver(t.Context(), job); done {
		t.Error("it is done")
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	ws.deliver(stopped, job) // what became of it is unknown
	if got, want := ws.Stats(), (Stats{Delivered: 1, Failed: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
