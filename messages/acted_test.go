package messages_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

func TestActedOn(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]struct{ subject, action, target, by, tenant string }{
		`{"kind":"tenant","name":"acme","quota":{},"by":"ann"}`:          {messages.SubjectQuotaPut, "quotas.put", "tenant/acme", "ann", ""},
		`{"tenant":"acme","seq":7}`:                                      {messages.SubjectDeadPurge, "dead.purge", "7", "", "acme"},
		`{"id":"k1","hash":"secret","tenant":"*","name":"n","by":"ann"}`: {messages.SubjectKeyCreate, "keys.create", "k1", "ann", ""},
		`{"schedule":{"name":"daily","tenant":"acme"},"by":"bob"}`:       {messages.SubjectSchedulePut, "schedules.put", "daily", "bob", "acme"},
		`{"worker":"w1"}`:                           {messages.SubjectWorkerDrain, "workers.drain", "w1", "", ""},
		`{"tenant":"a.b","id":7,"by":"ann"}`:        {messages.SubjectFork, "fork", "", "ann", ""},
		`{"by":"` + strings.Repeat("x", 999) + `"}`: {messages.SubjectFork, "fork", "", strict.Clip(strings.Repeat("x", 999), 256), ""},
		`junk`: {messages.SubjectFork, "fork", "", "", ""},
	} {
		act, tenant := messages.ActedOn(want.subject, []byte(request))
		text, err := json.Marshal(act)
		if act.Action != want.action || act.Target != want.target || act.By != want.by || tenant != want.tenant || err != nil || strings.Contains(string(text), "secret") {
			t.Errorf("%s: %s of %q", request, text, tenant)
		}
	}
}
