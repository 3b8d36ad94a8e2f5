package admission_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/admission"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/dispatcher/service/webhooks"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/roster"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
)

// What a task names stays for as long as the task waits, and a task that is refused leaves no reference. What is not stored is named.
func TestAdmissionKeepsWhatATaskNames(t *testing.T) {
	t.Parallel()
	ctx := bustest.Context(t)
	b, _ := bustest.OpenNew(t)
	agents, granted, tasks, stored := catalog.New(b), quotas.New(b, runlogs.New(b, runlogs.Config{})), taskqueue.New(b), files.New(b)
	if _, _, err := agents.PutAgent(ctx, messages.BuiltinAgent()); err != nil {
		t.Fatal(err)
	}
	if _, err := granted.PutQuota(ctx, queue.QuotaRef{Kind: queue.QuotaTenant, Name: "full"}, queue.Quota{MaxQueued: 1}, "", nil); err != nil {
		t.Fatal(err)
	}
	found := runs.New(runs.Config{Queue: tasks, Controller: &runlog.Controller{Log: runlogs.New(b, runlogs.Config{})}})
	a := admission.New(admission.Config{
		Queue: tasks, Quotas: granted, Catalog: agents, Workers: roster.New(b), Runs: found, Webhooks: webhooks.New(webhooks.Config{Runs: found}),
		Files: stored, Now: time.Now, NewID: func() string { return "made-up" }, Log: slog.New(slog.DiscardHandler),
	})
	put := func(tenant string, data []byte) string {
		t.Helper()
		if err := stored.Put(ctx, tenant, manifest.HashOf(data), int64(len(data)), bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		return manifest.HashOf(data)
	}
	submit := func(body string, args ...any) error {
		_, err := a.Handlers()[control.SubjectSubmit](ctx, fmt.Appendf(nil, body, args...))
		return err
	}
	refers := func(tenant, run string, want int) {
		t.Helper()
		refs, err := stored.Referred(ctx, messages.Ref{Tenant: tenant, Run: run})
		if err != nil || len(refs) != want {
			t.Errorf("%s/%s refers to %v, %v, want %d", tenant, run, refs, err, want)
		}
	}
	small, large := put("acme", []byte("small")), put("acme", make([]byte, 200<<10))
	list, _, err := (&manifest.Manifest{Files: []manifest.File{{Path: "l", Size: 200 << 10, Hash: large}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	hash := put("acme", list)
	for _, body := range []string{
		`{"id":"a","tenant":"acme","input":"hi","files":[{"path":"s","hash":"` + small + `","size":5},{"path":"t","text":"brought"}]}`,
		`{"id":"b","tenant":"acme","input":"hi","manifest":"` + hash + `"}`,
		`{"id":"c","tenant":"acme","input":"hi","files":[{"path":"t","text":"brought"}]}`, // its worker stores it
		`{"id":"a","tenant":"acme","input":"hi","files":[{"path":"t","text":"brought"},{"path":"s","hash":"` + small + `","size":5}]}`,
	} {
		if err := submit("%s", body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	refers("acme", "a", 1)
	refers("acme", "b", 1)
	refers("acme", "c", 0)
	if err := submit(`{"id":"q","tenant":"full","input":"hi"}`); err != nil {
		t.Fatal(err)
	}
	mine := put("full", []byte("small"))
	if p, ok := errors.AsType[*messages.Problem](submit(`{"id":"r","tenant":"full","input":"hi","files":[{"path":"s","hash":"%s","size":5}]}`, mine)); !ok || p.Code != messages.CodeRateLimited {
		t.Errorf("beyond the quota: %v", p)
	}
	refers("full", "r", 0)
	for body, want := range map[string]string{
		`{"id":"d","tenant":"other","input":"hi","files":[{"path":"s","hash":"` + small + `","size":5}]}`:// that of another tenant
		"files[0].hash: s: no content with this hash is stored: upload it, and submit the task within an hour",
		`{"id":"d","tenant":"acme","input":"hi","files":[{"path":"l","hash":"` + large + `","size":5}]}`: "files[0].size: l: the content with this hash has 204800 bytes, not 5",
		`{"id":"d","tenant":"acme","input":"hi","manifest":"` + small + `"}`:                             "manifest: is not a list of files: decode manifest: body: not valid JSON at byte 0",
	} {
		field, ok := errors.AsType[*messages.FieldError](submit("%s", body))
		if !ok || field.Error() != want {
			t.Errorf("%v, want %s", field, want)
		}
	}
	refers("other", "d", 0)
	refers("acme", "d", 0)
}
