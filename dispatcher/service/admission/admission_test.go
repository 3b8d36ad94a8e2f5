package admission_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/admission"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/dispatcher/service/webhooks"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/roster"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
)

// A task comes into the queue once, as far as its tenant's quota goes, and what cannot be kept is refused before it is stored.
func TestAdmission(t *testing.T) {
	t.Parallel()
	ctx := bustest.Context(t)
	b, _ := bustest.OpenNew(t)
	agents, granted, tasks := catalog.New(b), quotas.New(b, runlogs.New(b, runlogs.Config{})), taskqueue.New(b)
	if _, _, err := agents.PutAgent(ctx, messages.BuiltinAgent()); err != nil {
		t.Fatal(err)
	}
	if _, err := granted.PutQuota(ctx, queue.QuotaRef{Kind: queue.QuotaTenant, Name: "acme"}, queue.Quota{MaxQueued: 1}, "", nil); err != nil {
		t.Fatal(err)
	}
	logs := runlogs.New(b, runlogs.Config{})
	found := runs.New(runs.Config{Queue: tasks, Controller: &runlog.Controller{Log: logs}})
	a := admission.New(admission.Config{
		Queue: tasks, Quotas: granted, Catalog: agents, Workers: roster.New(b), Runs: found, Webhooks: webhooks.New(webhooks.Config{Runs: found}),
		Now: time.Now, NewID: func() string { return "made-up" }, Log: slog.New(slog.DiscardHandler),
	})
	submit := func(body string) (control.SubmitReply, error) {
		answer, err := a.Handlers()[control.SubjectSubmit](ctx, []byte(body))
		reply, _ := answer.(control.SubmitReply)
		return reply, err
	}
	refused := func(err error, code messages.Code, field string) {
		t.Helper()
		var (
			p   *messages.Problem
			bad *messages.FieldError
		)
		switch {
		case errors.As(err, &p) && p.Code == code && p.Field == field:
		case errors.As(err, &bad) && code == messages.CodeInvalidInput && bad.Field == field:
		default:
			t.Errorf("%v, want %s of %q", err, code, field)
		}
	}
	if reply, err := submit(`{"id":"a","tenant":"acme","input":"hi"}`); err != nil || reply != (control.SubmitReply{ID: "a"}) {
		t.Errorf("%+v, %v", reply, err)
	}
	if reply, err := submit(`{"id":"a","tenant":"acme","input":"hi"}`); err != nil || reply != (control.SubmitReply{ID: "a", Duplicate: true}) {
		t.Errorf("the same task again: %+v, %v", reply, err)
	}
	_, err := submit(`{"id":"a","tenant":"acme","input":"other"}`)
	refused(err, messages.CodeConflict, "")
	_, err = submit(`{"id":"b","tenant":"acme","input":"hi"}`)
	refused(err, messages.CodeRateLimited, "")
	_, err = submit(`{"id":"c","tenant":"harbour","input":"hi","deadline":"2020-01-01T00:00:00Z"}`)
	refused(err, messages.CodeDeadline, "deadline")
	_, err = submit(`{"id":"c","tenant":"harbour","input":"hi","webhook":{"url":"https://example.com/"}}`)
	refused(err, messages.CodeInvalidInput, "webhook")
	if _, err = submit(`{"id":"c","tenant":"harbour","input":"hi","agent":"unknown"}`); !errors.Is(err, messages.ErrUnknownAgent) {
		t.Errorf("an unknown agent: %v", err)
	}
	if reply, err := submit(`{"tenant":"harbour","input":"hi"}`); err != nil || reply != (control.SubmitReply{ID: "made-up"}) {
		t.Errorf("another tenant: %+v, %v", reply, err)
	}
	for tenant, want := range map[string]int{"acme": 1, "harbour": 1} {
		if n, err := a.WaitingTasks(ctx, tenant); n != want || err != nil {
			t.Errorf("%s has %d tasks, want %d: %v", tenant, n, want, err)
		}
	}
}
