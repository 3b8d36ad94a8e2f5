package messages_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

func TestActedOn(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]struct{ subject, action, target, by, tenant string }{
		`{"kind":"tenant","name":"acme","quota":{},"by":"ann"}`:          {control.SubjectQuotaPut, "quotas.put", "tenant/acme", "ann", ""},
		`{"tenant":"acme","seq":7}`:                                      {control.SubjectDeadPurge, "dead.purge", "7", "", "acme"},
		`{"id":"k1","hash":"secret","tenant":"*","name":"n","by":"ann"}`: {control.SubjectKeyCreate, "keys.create", "k1", "ann", ""},
		`{"schedule":{"name":"daily","tenant":"acme"},"by":"bob"}`:       {control.SubjectSchedulePut, "schedules.put", "daily", "bob", "acme"},
		`{"worker":"w1"}`:                           {control.SubjectWorkerDrain, "workers.drain", "w1", "", ""},
		`{"tenant":"a.b","id":7,"by":"ann"}`:        {control.SubjectFork, "fork", "", "ann", ""},
		`{"by":"` + strings.Repeat("x", 999) + `"}`: {control.SubjectFork, "fork", "", strict.Clip(strings.Repeat("x", 999), 256), ""},
		`junk`: {control.SubjectFork, "fork", "", "", ""},
	} {
		act, tenant := control.Of(want.subject).Acted([]byte(request))
		text, err := json.Marshal(act)
		if act.Action != want.action || act.Target != want.target || act.By != want.by || tenant != want.tenant || err != nil || strings.Contains(string(text), "secret") {
			t.Errorf("%s: %s of %q", request, text, tenant)
		}
	}
}
