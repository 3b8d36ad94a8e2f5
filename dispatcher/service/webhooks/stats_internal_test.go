package webhooks

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
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

// busy is a Sender whose first deliveries end when it is told so; later ones arrive at once.
type busy struct {
	begun chan struct{}
	end   chan struct{}
}

func (*busy) Check(*messages.Webhook) error { return nil }

func (b *busy) Send(context.Context, *messages.WebhookJob) error {
	select {
	case b.begun <- struct{}{}:
		<-b.end
	default:
	}
	return nil
}

// A receiver has no more deliveries at once when its address is written in several ways.
func TestDeliveriesToOneReceiverAtOnce(t *testing.T) {
	to := &busy{make(chan struct{}, perHost), make(chan struct{})}
	ws := New(Config{Sender: to, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	job := func(url string) webhooks.Delivery {
		return webhooks.Delivery{WebhookJob: messages.WebhookJob{Tenant: "acme", URL: url}, Queued: time.Now(), Delivered: 1}
	}
	var delivering sync.WaitGroup
	for range perHost {
		delivering.Go(func() { ws.deliver(t.Context(), job("https://example.com/a")) })
	}
	for len(to.begun) < perHost {
		runtime.Gosched()
	}
	for _, url := range []string{"https://example.com/b", "https://EXAMPLE.com/", "https://example.com:443/", "https://example.com./"} {
		if _, done := ws.deliver(t.Context(), job(url)); done {
			t.Errorf("%s was called while the receiver had %d deliveries", url, perHost)
		}
	}
	close(to.end)
	delivering.Wait()
}
