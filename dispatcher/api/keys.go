package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// KeyOrder says what an API key is to be.
type KeyOrder struct {
	Tenant  string               `json:"tenant,omitempty"` // whose key it is, or * for all tenants; default: that of the request
	Roles   []control.AccessRole `json:"roles"`
	Name    string               `json:"name,omitempty"`    // for people
	Expires *time.Time           `json:"expires,omitempty"` // it is refused from then on; absent: it is valid until it is revoked
}

// NewKey is an API key that was made.
type NewKey struct {
	Key string `json:"key"` // shown this once: the fleet keeps its hash
	control.APIKey
}

// keyOperations are those about API keys.
func keyOperations() []operation {
	return []operation{
		{
			method: "POST", path: "/v1/keys", id: "createKey", needs: control.ManageKeys, tag: "keys", summary: "Make an API key",
			text: "The key is in the answer, and only there. It is limited to the tenant and the permissions of the caller.",
			body: KeyOrder{}, reply: NewKey{}, status: http.StatusCreated, answer: createKey,
		},
		{
			method: "GET", path: "/v1/keys", id: "listKeys", needs: control.ManageKeys, tag: "keys", summary: "List the API keys",
			text:  "Lists the keys of the tenant of the request; with a key for all tenants those of all, unless Longshore-Tenant names one. The keys themselves are not stored.",
			reply: control.KeyList{}, answer: listKeys,
		},
		{
			method: "DELETE", path: "/v1/keys/{id}", id: "revokeKey", needs: control.ManageKeys, tag: "keys", summary: "Revoke an API key",
			failures: failuresOf(control.SubjectKeyRevoke),
			text:     "It is refused by every dispatcher within ten seconds.",
			reply:    control.Change{}, answer: revokeKey,
		},
	}
}

// manageable refuses when authentication is disabled: keys that any caller can create would be valid at dispatchers that
// authenticate.
func (q *query) manageable() error {
	if q.who == nil {
		return forbidden("authentication is disabled here: set LONGSHORE_AUTH=on, or use `longshore keys api`")
	}
	return nil
}

// keysOf is the tenant whose keys a request is about; empty: all.
func (q *query) keysOf() (string, error) {
	if q.who.AllTenants() && q.r.Header.Get(control.HeaderTenant) == "" {
		return "", nil
	}
	return q.tenant()
}

func createKey(ctx context.Context, q *query) (any, error) {
	if err := q.manageable(); err != nil {
		return nil, err
	}
	var order KeyOrder
	if err := q.read(&order); err != nil {
		return nil, err
	}
	tenant, err := q.tenant()
	if err != nil {
		return nil, err
	}
	switch {
	case order.Tenant == "":
		order.Tenant = tenant
	case order.Tenant != tenant && q.r.Header.Get(control.HeaderTenant) != "":
		return nil, forbidden("the key is not for the tenant that " + control.HeaderTenant + " names")
	}
	if err := control.CheckAccess(order.Tenant, order.Roles); err != nil {
		return nil, err
	}
	if !q.who.Includes(&auth.Principal{Tenant: order.Tenant, Roles: order.Roles}) {
		return nil, forbidden("a key may only be for your own tenant, and may only do what you may do yourself")
	}
	spec := dispatcher.KeySpec{Tenant: order.Tenant, Roles: order.Roles, Name: order.Name, By: q.by("")}
	if order.Expires != nil {
		spec.Expires = *order.Expires
	}
	key, about, err := q.api.cfg.Client.Keys().Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return NewKey{key, about}, nil
}

func listKeys(ctx context.Context, q *query) (any, error) {
	if err := q.manageable(); err != nil {
		return nil, err
	}
	tenant, err := q.keysOf()
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.Keys().List(ctx, tenant)
}

func revokeKey(ctx context.Context, q *query) (any, error) {
	if err := q.manageable(); err != nil {
		return nil, err
	}
	tenant, err := q.keysOf()
	if err != nil {
		return nil, err
	}
	change, err := q.api.cfg.Client.Keys().RevokeOf(ctx, tenant, q.r.PathValue("id"), q.by(""))
	if wrong, ok := errors.AsType[*messages.FieldError](err); errors.Is(err, dispatcher.ErrNoKey) || ok && wrong.Field == "id" {
		return nil, problemf(http.StatusNotFound, messages.CodeNotFound, "no such key")
	}
	if err != nil {
		return nil, err
	}
	return change, nil
}
