package keys_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/keys"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/control"
)

// A key is revoked by its own tenant or by the fleet. To another tenant it does not exist.
func TestAKeyIsRevokedByItsTenant(t *testing.T) {
	t.Parallel()
	ctx := bustest.Context(t)
	b, _ := bustest.OpenNew(t)
	stored := catalog.New(b)
	handlers := keys.New(keys.Config{Catalog: stored, Now: time.Now, Log: slog.New(slog.DiscardHandler)}).Handlers()
	ask := func(subject string, req any) error {
		body, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		_, err = handlers[subject](ctx, body)
		return err
	}
	id := strings.Repeat("a", 12)
	create := control.KeyCreate{ID: id, Tenant: "acme", Roles: []control.AccessRole{control.RoleViewer}, Hash: strings.Repeat("0", 64)}
	if err := ask(control.SubjectKeyCreate, create); err != nil {
		t.Fatal(err)
	}
	is := func(err error, code messages.Code) bool {
		var p *messages.Problem
		return errors.As(err, &p) && p.Code == code
	}
	if err := ask(control.SubjectKeyCreate, create); !is(err, messages.CodeConflict) {
		t.Errorf("the same id again: %v", err)
	}
	if err := ask(control.SubjectKeyRevoke, control.KeyRevoke{Tenant: "harbour", ID: id}); !errors.Is(err, control.ErrNoKey) {
		t.Errorf("by another tenant: %v", err)
	}
	if _, ok, err := stored.Key(ctx, id); !ok || err != nil {
		t.Fatalf("the key is gone: %v", err)
	}
	for range 2 { // revoking twice is no error, for the fleet
		if err := ask(control.SubjectKeyRevoke, control.KeyRevoke{ID: id}); err != nil {
			t.Error(err)
		}
	}
	if _, ok, err := stored.Key(ctx, id); ok || err != nil {
		t.Errorf("the key is there still: %v", err)
	}
}
