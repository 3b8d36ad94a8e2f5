package catalog_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
)

func TestKeys(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	cat := catalog.New(b)
	ctx := t.Context()
	var field *messages.FieldError
	for _, id := range []string{"", "*", ">", "abcdefghijk", "abcdefghijk."} {
		if _, _, err := cat.Key(ctx, id); !errors.As(err, &field) {
			t.Errorf("read %q: %v", id, err)
		}
		if _, _, err := cat.RevokeKey(ctx, id, "ann"); !errors.As(err, &field) {
			t.Errorf("revoke %q: %v", id, err)
		}
	}
	if _, ok, err := cat.Key(ctx, "abcdefghijkl"); ok || err != nil {
		t.Errorf("a key that never was: %v, %v", ok, err)
	}
	one := control.StoredKey{APIKey: control.APIKey{ID: "abcdefghijkl", Tenant: "acme", Roles: []control.AccessRole{"viewer"}, By: "ann"}, Hash: "00"}
	two := control.StoredKey{APIKey: control.APIKey{ID: "bbbbbbbbbbbb", Tenant: "*", Roles: []control.AccessRole{"admin"}}, Hash: "01"}
	for _, k := range []control.StoredKey{one, two} {
		if err := cat.CreateKey(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	changed := one
	changed.Hash = "02"
	if err := cat.CreateKey(ctx, changed); !errors.Is(err, messages.ErrRevision) {
		t.Errorf("another key of the same id: %v", err)
	}
	got, ok, err := cat.Key(ctx, one.ID)
	if diff := cmp.Diff(one, got); !ok || err != nil || diff != "" {
		t.Errorf("%v, %v: %s", ok, err, diff)
	}
	if _, err := nc.RequestWithContext(ctx, "$KV.KEYS.cccccccccccc", []byte(`{"id":"abcdefghijkl","hash":"00"}`)); err != nil { // under another's id
		t.Fatal(err)
	}
	if _, ok, err := cat.Key(ctx, "cccccccccccc"); ok || err == nil {
		t.Errorf("a key under another's id: %v, %v", ok, err)
	}
	for tenant, want := range map[string][]control.APIKey{"": {one.APIKey, two.APIKey}, "acme": {one.APIKey}, "other": {}} {
		list, more, err := cat.Keys(ctx, tenant)
		if diff := cmp.Diff(want, list); more || err != nil || diff != "" {
			t.Errorf("list %q: %v, %v, %s", tenant, more, err, diff)
		}
	}
	if _, changed, err := cat.RevokeKey(ctx, one.ID, "bob"); !changed || err != nil {
		t.Errorf("revoke: %v, %v", changed, err)
	}
	if c, changed, err := cat.RevokeKey(ctx, one.ID, "eve"); changed || err != nil || c.By != "bob" {
		t.Errorf("revoke again: %+v, %v, %v", c, changed, err)
	}
	if _, ok, err := cat.Key(ctx, one.ID); ok || err != nil {
		t.Errorf("a revoked key: %v, %v", ok, err)
	}
}

// Events about no run are numbered for each tenant.
func TestAnnounceToTenants(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	for _, tenant := range []string{"acme", "other", "acme"} {
		if err := events.New(b).AnnounceTo(t.Context(), tenant, control.EventAuthDenied, control.AuthDenied{Code: messages.CodeForbidden}); err != nil {
			t.Fatal(err)
		}
	}
	for tenant, want := range map[string]int{"acme": 2, "other": 1, "default": 0} {
		got := 0
		for e, err := range events.New(b).Events(t.Context(), "events."+tenant+"._.auth_denied", time.Time{}) {
			if err != nil || e.Source != "/tenants/"+tenant || e.Subject != messages.NoRun {
				t.Errorf("%+v, %v", e, err)
			}
			got++
		}
		if got != want {
			t.Errorf("%d events of %s, want %d", got, tenant, want)
		}
	}
}
