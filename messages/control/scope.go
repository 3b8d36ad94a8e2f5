package control

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Requests have a second subject for clients that are bound to one tenant, "longshore.t.<tenant>.<request>": what a user
// of the message store may publish is a matter of subjects, and a body is not.
const (
	requestPrefix = "longshore."
	tenantPrefix  = requestPrefix + "t."
)

// TenantSubject is the subject of a request for clients bound to a tenant, "*" for those of all tenants. Which requests they
// can make says control.Operations.
func TenantSubject(tenant, subject string) string {
	return tenantPrefix + tenant + "." + strings.TrimPrefix(subject, requestPrefix)
}

// OfTenant reports whether a subject is one for clients bound to a tenant, even to one that cannot be.
func OfTenant(subject string) bool { return strings.HasPrefix(subject, tenantPrefix) }

// TenantOf is the tenant in a subject that TenantSubject made.
func TenantOf(subject string) (tenant string, ok bool) {
	rest, ok := strings.CutPrefix(subject, tenantPrefix)
	if !ok {
		return "", false
	}
	tenant, _, ok = strings.Cut(rest, ".")
	return tenant, ok && strict.ValidToken(tenant) && tenant != messages.NoRun
}

// BindTenant returns a request's body with its tenant, who may be named in it already. Another one is a *Problem with
// CodeForbidden; a body that is no object is a *FieldError.
func BindTenant(body []byte, tenant string) ([]byte, error) {
	var req map[string]json.RawMessage
	if err := strict.Decode(body, &req); err != nil {
		return nil, err
	}
	if named, ok := req["tenant"]; ok {
		var is string
		if err := strict.DecodeDepth("tenant", strict.MaxDepth, named, &is); err != nil {
			return nil, err
		}
		if is != "" && is != tenant {
			return nil, Forbidden(fmt.Sprintf("this subject is for requests of tenant %q alone", tenant))
		}
	}
	own, err := json.Marshal(tenant)
	if err != nil {
		return nil, fmt.Errorf("encode tenant: %w", err)
	}
	if req == nil {
		req = map[string]json.RawMessage{}
	}
	req["tenant"] = own
	bound, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bound, nil
}

// Forbidden is the answer to a caller without the permission for a request.
func Forbidden(detail string) *messages.Problem {
	const status = 403
	return &messages.Problem{Type: "about:blank", Title: "Forbidden", Status: status, Code: messages.CodeForbidden, Detail: detail}
}
