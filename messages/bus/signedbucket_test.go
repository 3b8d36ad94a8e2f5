package bus_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// Where there are control keys, what is unsigned changes neither keys nor agents, prompts, quotas or pauses: what a
// dispatcher stored still counts, and its next change is not hindered. A signature is of one place alone.
func TestForgedRevisions(t *testing.T) {
	s, k := bustest.Start(t), bustest.NewKey(t)
	b, nc := bustest.Open(t, s, bus.Config{Signer: k, Keys: bustest.KeysOf(t, k)})
	cat := catalog.New(b)
	reader, _ := bustest.Open(t, s, bus.Config{Keys: bustest.KeysOf(t, k)}) // a worker
	readerCat := catalog.New(reader)
	ctx := bustest.Context(t)
	hash := strings.Repeat("0", 64)
	if err := cat.CreateKey(ctx, control.StoredKey{APIKey: control.APIKey{ID: "aaaaaaaaaaaa", Tenant: "acme", Roles: []control.AccessRole{"viewer"}}, Hash: hash}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := cat.PutAgent(ctx, messages.Definition{Name: "careful", Instructions: "ask"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := cat.PutPrompt(ctx, control.PromptPut{Prompt: messages.Prompt{ID: "hello", Text: "Be kind."}}); err != nil {
		t.Fatal(err)
	}
	of := queue.QuotaRef{Kind: queue.QuotaTenant, Name: "acme"}
	if _, err := quotas.New(b, bustest.Logs(b)).PutQuota(ctx, of, queue.Quota{PerMinute: 5}, "ann", nil); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(ctx, "KV_AGENTS")
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.GetLastMsgForSubject(ctx, "$KV.AGENTS.careful")
	if err != nil {
		t.Fatal(err)
	}
	forge := func(subject, body string, header nats.Header) {
		t.Helper()
		if _, err := js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: []byte(body), Header: header}); err != nil {
			t.Fatal(err)
		}
	}
	forge("$KV.KEYS.aaaaaaaaaaaa", `{"id":"aaaaaaaaaaaa","tenant":"acme","roles":["admin"],"hash":"`+hash+`"}`, nil)
	forge("$KV.KEYS.bbbbbbbbbbbb", `{"id":"bbbbbbbbbbbb","tenant":"acme","roles":["admin"],"hash":"`+hash+`"}`, nil)
	forge("$KV.AGENTS.careful", `{"name":"careful","instructions":"do it","planner":"tools"}`, nats.Header{"Longshore-Signature": {"aGk="}})
	forge("$KV.AGENTS.other", `{"name":"other","instructions":"do it","planner":"tools"}`, nil)
	forge("$KV.PROMPTS.hello", "", nats.Header{"KV-Operation": {"DEL"}})
	forge("$KV.QUOTAS.tenant.acme", `{}`, nil)
	forge("$KV.QUOTAS.tenant.harbour", `{"perMinute":1000}`, nil)
	// A copy of what was signed, elsewhere and in its own place.
	copied := nats.Header{"Longshore-Signature": first.Header["Longshore-Signature"], "Longshore-By": first.Header["Longshore-By"]}
	forge("$KV.AGENTS.copied", string(first.Data), copied)
	replay := &nats.Msg{Subject: "$KV.AGENTS.careful", Data: first.Data, Header: first.Header}
	if _, err := js.PublishMsg(ctx, replay); err == nil {
		t.Error("a signed revision is stored again")
	}
	for name, b := range map[string]*bus.Bus{"dispatcher": b, "worker": reader} {
		t.Run(name, func(t *testing.T) {
			if key, ok, err := cat.Key(ctx, "aaaaaaaaaaaa"); err != nil || !ok || key.Roles[0] != "viewer" {
				t.Errorf("key %+v, %v, %v", key, ok, err)
			}
			if key, ok, err := cat.Key(ctx, "bbbbbbbbbbbb"); err != nil || ok {
				t.Errorf("a forged key counts: %+v, %v", key, err)
			}
			if def, err := cat.AgentAt(ctx, "careful", 0); err != nil || def.Agent.Instructions != "ask" {
				t.Errorf("agent %+v, %v", def.Agent, err)
			}
			if list, err := cat.Agents(ctx); err != nil || len(list) != 3 { // two are built in
				t.Errorf("agents %+v, %v", list, err)
			}
			if p, err := cat.Prompt(ctx, "hello", 0); err != nil || p.Text != "Be kind." {
				t.Errorf("prompt %+v, %v", p, err)
			}
			if q, _, err := quotas.New(b, bustest.Logs(b)).Quota(ctx, of); err != nil || q.PerMinute != 5 {
				t.Errorf("quota %+v, %v", q, err)
			}
			if q, _, err := quotas.New(b, bustest.Logs(b)).Quota(ctx, queue.QuotaRef{Kind: queue.QuotaTenant, Name: "harbour"}); err != nil || q.Paused == nil {
				t.Errorf("an unsigned grant is %+v, %v, want a pause", q, err)
			}
			if b.IgnoredRevisions() == 0 {
				t.Error("nothing is counted")
			}
		})
	}
	if c, changed, err := cat.ApplyAgent(ctx, messages.Definition{Name: "careful", Instructions: "ask twice"}, "ann", &first.Sequence); err != nil || !changed {
		t.Errorf("the next change: %+v, %v", c, err)
	}
	if def, err := readerCat.AgentAt(ctx, "careful", 0); err != nil || def.Agent.Instructions != "ask twice" {
		t.Errorf("agent %+v, %v", def.Agent, err)
	}
	if _, changed, err := cat.RevokeKey(ctx, "aaaaaaaaaaaa", "ann"); err != nil || !changed {
		t.Errorf("revoke: %t, %v", changed, err)
	}
	if _, ok, err := readerCat.Key(ctx, "aaaaaaaaaaaa"); err != nil || ok {
		t.Errorf("a revoked key counts: %v", err)
	}
}

// A dispatcher that signs while everything counts signs what was stored before, once; one with control keys does not.
func TestStoredRevisionsAreSigned(t *testing.T) {
	s, k := bustest.Start(t), bustest.NewKey(t)
	plain, _ := bustest.Open(t, s, bus.Config{})
	ctx := bustest.Context(t)
	if _, _, err := catalog.New(plain).PutAgent(ctx, messages.Definition{Name: "careful", Instructions: "ask"}); err != nil {
		t.Fatal(err)
	}
	strict, _ := bustest.Open(t, s, bus.Config{Signer: k, Keys: bustest.KeysOf(t, k)})
	if n, err := strict.SignStored(ctx); err != nil || n != 0 {
		t.Errorf("with control keys %d are signed, %v", n, err)
	}
	signer, _ := bustest.Open(t, s, bus.Config{Signer: k})
	for _, want := range []int{1, 0} {
		if n, err := signer.SignStored(ctx); err != nil || n != want {
			t.Errorf("%d are signed, %v, want %d", n, err, want)
		}
	}
	if def, err := catalog.New(strict).AgentAt(ctx, "careful", 0); err != nil || def.Agent.Instructions != "ask" || def.Change.By != catalog.ByDispatcher {
		t.Errorf("agent %+v, %v", def, err)
	}
}
