package control

import (
	"encoding/hex"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Requests about the API keys of HTTP. A client makes the key itself and sends its hash: the dispatcher never sees it.
const (
	SubjectKeyCreate = "longshore.keys.create" // KeyCreate -> APIKey; conflict: the id is taken
	SubjectKeyList   = "longshore.keys.list"   // KeyListRequest -> KeyList
	SubjectKeyRevoke = "longshore.keys.revoke" // KeyRevoke -> Change
)

// EventAuthDenied records a request that was denied. It belongs to no run: its subject is NoRun of the caller's tenant if that is
// known, else of the default tenant.
const EventAuthDenied = "auth_denied"

// AllTenants stands for the tenant of those who may act for every tenant.
const AllTenants = "*"

// AccessRole is a role of the HTTP API.
type AccessRole string

// Roles. Which requests each may make, the package dispatcher/auth says.
const (
	RoleViewer    AccessRole = "viewer"
	RoleSubmitter AccessRole = "submitter"
	RoleApprover  AccessRole = "approver"
	RoleOperator  AccessRole = "operator"
	RoleAuthor    AccessRole = "author"  // of prompts, and of the texts of agents; for all tenants
	RoleGranter   AccessRole = "granter" // of what agents may do, and of all that an author changes; for all tenants
	RoleAdmin     AccessRole = "admin"
)

// AccessRoles are all roles.
func AccessRoles() []AccessRole {
	return []AccessRole{RoleViewer, RoleSubmitter, RoleApprover, RoleOperator, RoleAuthor, RoleGranter, RoleAdmin}
}

// APIKey describes an API key. The key itself is not stored: only its holder knows it.
type APIKey struct {
	ID      string       `json:"id"`
	Tenant  string       `json:"tenant"` // or AllTenants
	Roles   []AccessRole `json:"roles"`
	Name    string       `json:"name,omitempty"` // for people
	Created time.Time    `json:"created"`
	By      string       `json:"by,omitempty"`      // who says to have made it
	Expires *time.Time   `json:"expires,omitempty"` // from then on it counts no more
}

// StoredKey is an API key as it is stored.
type StoredKey struct {
	APIKey

	Hash string `json:"hash"` // SHA-256 of the whole key, in hex
}

// KeyCreate asks to store a key. Created is the dispatcher's to give.
type KeyCreate struct {
	ID      string       `json:"id"`
	Hash    string       `json:"hash"` // SHA-256 of the whole key, in hex
	Tenant  string       `json:"tenant"`
	Roles   []AccessRole `json:"roles"`
	Name    string       `json:"name,omitempty"`
	By      string       `json:"by,omitempty"`
	Expires *time.Time   `json:"expires,omitempty"`
}

// KeyListRequest says which keys to list.
type KeyListRequest struct {
	Tenant string `json:"tenant,omitempty"` // default: those of all
}

// KeyList is keys by id, those that have expired among them.
type KeyList struct {
	Keys []APIKey `json:"keys"`
	More bool     `json:"more,omitempty"` // there are more than these
}

// KeyRevoke asks to make a key invalid.
type KeyRevoke struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant,omitempty"` // only if it is a key of this tenant; others are not found
	By     string `json:"by,omitempty"`
}

// AuthDenied is the data of auth_denied.
type AuthDenied struct {
	Code      messages.Code `json:"code"`                // unauthenticated, forbidden or rate_limited
	Reason    string        `json:"reason"`              // what was said to who asked
	Operation string        `json:"operation,omitempty"` // of the OpenAPI document, or the subject of the request
	Tenant    string        `json:"tenant,omitempty"`    // for which it was asked, when that was another than one's own
	Who       string        `json:"who,omitempty"`       // who asked, when that is known
	Remote    string        `json:"remote,omitempty"`    // the address that it came from
	// Omitted is how many attempts a dispatcher refused that have no event of their own: it tells of a few a second, and
	// counts the others.
	Omitted uint64 `json:"omitted,omitempty"`
}

// Limits of keys, in bytes.
const (
	minKeyID   = 12
	maxKeyName = 64
)

// CheckAccess returns a *FieldError unless a principal of the tenant may have these roles.
func CheckAccess(tenant string, roles []AccessRole) error {
	if tenant != AllTenants && !strict.ValidToken(tenant) {
		return &messages.FieldError{Field: "tenant", Reason: "must be 1 to 64 characters of A-Z a-z 0-9 _ -, or * for all tenants"}
	}
	if len(roles) == 0 {
		return &messages.FieldError{Field: "roles", Reason: "is missing: viewer, submitter, approver, operator, author, granter or admin"}
	}
	seen := map[AccessRole]bool{}
	for _, r := range roles {
		switch r {
		case RoleViewer, RoleOperator, RoleAdmin:
		case RoleAuthor, RoleGranter:
			if tenant != AllTenants {
				return &messages.FieldError{Field: "roles", Reason: string(r) + " is a role for all tenants: agents and prompts are theirs"}
			}
		case RoleSubmitter, RoleApprover:
			if tenant == AllTenants {
				return &messages.FieldError{Field: "roles", Reason: string(r) + " is a role within one tenant; for all tenants there are viewer, operator, author, granter and admin"}
			}
		default:
			return &messages.FieldError{Field: "roles", Reason: "must be viewer, submitter, approver, operator, author, granter or admin"}
		}
		if seen[r] {
			return &messages.FieldError{Field: "roles", Reason: "names " + string(r) + " twice"}
		}
		seen[r] = true
	}
	return nil
}

// Check returns a *FieldError for the first field that is wrong.
func (r *KeyCreate) Check(now time.Time) error {
	if err := CheckKeyID(r.ID); err != nil {
		return err
	}
	if sum, err := hex.DecodeString(r.Hash); err != nil || len(sum) != 32 {
		return &messages.FieldError{Field: "hash", Reason: "must be a SHA-256 in hex"}
	}
	if err := CheckAccess(r.Tenant, r.Roles); err != nil {
		return err
	}
	if err := strict.CheckText("name", r.Name, maxKeyName); err != nil {
		return err
	}
	if r.Expires != nil && !r.Expires.After(now) {
		return &messages.FieldError{Field: "expires", Reason: "is not in the future"}
	}
	return strict.CheckText("by", r.By, messages.MaxAuthor)
}

// Check returns a *FieldError for the first field that is wrong.
func (r *KeyRevoke) Check() error {
	if err := CheckKeyID(r.ID); err != nil {
		return err
	}
	return strict.CheckText("by", r.By, messages.MaxAuthor)
}

// CheckKeyID returns a *FieldError unless s may be the id of a key.
func CheckKeyID(s string) error {
	ok := len(s) >= minKeyID && len(s) <= strict.MaxToken
	for i := 0; i < len(s) && ok; i++ {
		c := s[i]
		ok = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	}
	if !ok {
		return &messages.FieldError{Field: "id", Reason: "must be 12 to 64 letters and digits, as between the underscores of a key"}
	}
	return nil
}
