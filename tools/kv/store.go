package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Store keeps values under keys, each scope apart from all others. Every call ends soon, whether its ctx does or not. Safe for
// concurrent use. Package kvtest checks what is promised here.
type Store interface {
	// Get returns ErrNone when nothing is kept under the key.
	Get(ctx context.Context, s Scope, key string) (Item, error)
	// Set keeps a value and returns its revision, which is larger than that of every value before in the scope. It returns a
	// *ConflictError or a *QuotaError when nothing was changed. The same Call again changes nothing and returns what it
	// returned when it was made, for a day at least and among the last 1,000 calls of the scope.
	Set(ctx context.Context, s Scope, w Write) (revision int64, err error)
	// Delete removes a value and reports whether there was one. Call and Expect are as for Set.
	Delete(ctx context.Context, s Scope, r Removal) (was bool, err error)
	// List returns keys in the order of their bytes, and whether there are more.
	List(ctx context.Context, s Scope, q Query) (entries []Entry, more bool, err error)
}

// Limits are what a store keeps to. TTL bounds what is kept in a scope that is no longer written to.
type Limits struct {
	Keys  int           // of a scope
	Bytes int64         // of a scope, keys and values together
	TTL   time.Duration // no Write has a longer one
	// TenantBytes are those of all scopes of a tenant, keys and values together; 0: no limit. A store may let a little more in when several
	// calls add to it at the same moment, and count what has ended until its scope is changed again or all of it has ended.
	TenantBytes int64
}

// Scope is who shares what is kept: a run, the runs of a session, or those of a tenant.
type Scope struct {
	Kind   string // messages.KVRun, KVSession or KVTenant
	Tenant string
	Name   string // of the run or of the session; empty for a tenant
}

// Check reports whether no other scope can have the same String.
func (s Scope) Check() error {
	if err := strict.CheckToken("tenant", s.Tenant); err != nil {
		return err
	}
	switch s.Kind {
	case messages.KVTenant:
		if s.Name != "" {
			return &messages.FieldError{Field: "scope", Reason: "a tenant's has no name"}
		}
		return nil
	case messages.KVRun, messages.KVSession:
		return strict.CheckToken(s.Kind, s.Name)
	default:
		return &messages.FieldError{Field: "scope", Reason: "must be run, session or tenant"}
	}
}

// String has letters, digits, "_", "-" and the dots between the parts, which no part has in it.
func (s Scope) String() string { return s.Kind + "." + s.Tenant + "." + s.Name }

// Item is what is kept under a key.
type Item struct {
	Value    string
	Revision int64
	Expires  time.Time
}

// Write is what Set does.
type Write struct {
	Key, Value string
	TTL        time.Duration // more than 0 and at most that of the Limits
	Expect     *int64        // the revision that the value must have now, 0 for none; nil: whatever it has
	Call       string        // of the call, the same when it is repeated; empty: it is never the same
}

// Removal is what Delete does.
type Removal struct {
	Key    string
	Expect *int64
	Call   string
}

// Query is what List returns: keys with a prefix, after another one, and so many at most.
type Query struct {
	Prefix, After string
	Limit         int // more than 0
}

// Entry is a key with what is known of its value.
type Entry struct {
	Key      string
	Bytes    int
	Revision int64
	Expires  time.Time
}

// ErrNone says that nothing is kept under a key.
var ErrNone = errors.New("nothing is kept under the key")

// ConflictError says that a value is not the one that was expected.
type ConflictError struct {
	Key      string
	Revision int64 // that it has; 0: there is none
}

func (e *ConflictError) Error() string {
	if e.Revision == 0 {
		return fmt.Sprintf("nothing is kept under %q", e.Key)
	}
	return fmt.Sprintf("%q has revision %d", e.Key, e.Revision)
}

// QuotaError says that a scope is full.
type QuotaError struct{ Reason string }

func (e *QuotaError) Error() string { return e.Reason }

// Quota is one of the Limits.
type Quota int

// Quotas that a Set may exceed.
const (
	QuotaKeys Quota = iota
	QuotaBytes
	QuotaTenant
)

// Full is the error of a scope or a tenant that has as much as it may.
func (l Limits) Full(q Quota) error {
	switch q {
	case QuotaKeys:
		return &QuotaError{fmt.Sprintf("the store is full: there may be %d keys; delete some first", l.Keys)}
	case QuotaTenant:
		return &QuotaError{fmt.Sprintf("the store is full: keys and values of all runs of the tenant together may have %d bytes; delete some first", l.TenantBytes)}
	default:
		return &QuotaError{fmt.Sprintf("the store is full: keys and values together may have %d bytes; delete some first", l.Bytes)}
	}
}

// Calls that a store knows again.
const (
	CallsKept = 1000           // of a scope
	CallsFor  = 24 * time.Hour // at least, unless there are more
)
