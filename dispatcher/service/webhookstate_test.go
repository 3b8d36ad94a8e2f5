package service_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/webhooks"
	"github.com/longshore-run/longshore/messages/control"
)

// The status of a run shows the state of its webhook: while it is under way, when it was taken, when it was given up,
// and when that was sent again.
func TestWebhookState(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	defer o.open(o.nc)()
	state := func(run messages.Ref) *control.WebhookState {
		t.Helper()
		st, err := o.client.Status(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		return st.Webhook
	}
	is := func(run messages.Ref, want control.WebhookStanding) {
		t.Helper()
		o.until(string(want), func() bool { st := state(run); return st != nil && st.State == want })
	}
	answered := make(chan int)
	o.answers(func(int) int { return <-answered })

	run := o.end("taken", &messages.Webhook{URL: o.url}, messages.StatusCompleted)
	o.until("queued", func() bool { st := state(run); return st != nil && st.State == control.WebhookPending && st.At != nil })
	answered <- http.StatusNoContent
	o.next()
	is(run, control.WebhookDelivered)

	run = o.end("refused", &messages.Webhook{URL: o.url}, messages.StatusFailed)
	answered <- http.StatusGone
	o.next()
	is(run, control.WebhookDead)
	if st := state(run); st.Attempts != 1 || !strings.Contains(st.LastError, "410") || st.At == nil || strings.Contains(st.LastError, "hidden") {
		t.Errorf("given up: %+v", st)
	}
	letter := o.letters(1)[0]
	if _, err := o.client.DeadLetters().Redrive(t.Context(), control.DeadRedrive{DeadRequest: control.DeadRequest{Seq: letter.Seq, Tenant: run.Tenant}}); err != nil {
		t.Fatal(err)
	}
	is(run, control.WebhookPending)
	answered <- http.StatusOK
	o.next()
	is(run, control.WebhookDelivered)

	for name, w := range map[string]*messages.Webhook{"without": nil, "not-told": {URL: o.url, Events: []string{"failed"}}} {
		if st := state(o.end(name, w, messages.StatusCompleted)); st != nil {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// Before any dispatcher has looked at the end of a run, its webhook is not said to be delivered.
func TestWebhookStateBeforeTheEndIsTaken(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	run := o.end("r", &messages.Webhook{URL: o.url}, messages.StatusCompleted)
	st, err := webhooks.New(o.bus).State(t.Context(), run)
	if err != nil || st.State != control.WebhookPending {
		t.Errorf("%+v, %v", st, err)
	}
}
