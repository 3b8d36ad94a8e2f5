package keyring

import (
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages/record"
)

// ErrClear says that a value is in the clear where only sealed ones are accepted. It is a record.ErrClear.
var ErrClear error = &unreadableError{record.ErrClear}

// ErrDamaged says that a sealed value does not open: it was changed, cut, or moved here from elsewhere.
var ErrDamaged error = &unreadableError{errors.New("it is sealed and does not open: it was changed, or moved here from another place")}

// unreadableError is a record.ErrUnreadable, and what it holds.
type unreadableError struct{ error }

func (e *unreadableError) Unwrap() error { return e.error }

// Is reports whether the target is record.ErrUnreadable.
func (*unreadableError) Is(target error) bool { return target == record.ErrUnreadable }

// NoKeyError says that this process lacks the key of a value. It is a record.ErrNoKey: others may have it. They do not if it is one of the
// tenant's, for all read the same keyset: then it is a record.ErrKeyMissing too.
type NoKeyError struct {
	Tenant string
	Key    uint32 // the id; 0: this process has no keyset at all
	Master bool   // it is a key of the master keyset, else one of the tenant's
}

func (e *NoKeyError) Error() string {
	switch {
	case e.Key == 0:
		return "it is encrypted, and this process has no keyset: set LONGSHORE_KEYSET as on the processes that wrote it"
	case e.Master:
		return fmt.Sprintf("the keyset of tenant %s needs key %s, which LONGSHORE_KEYSET of this process lacks: give it the newest keyset of the fleet", e.Tenant, KeyID(e.Key))
	default:
		return fmt.Sprintf("the keyset of tenant %s has no key %s: the bucket KEYRING was restored from an older backup, or another fleet wrote the value: restore the newest backup of KEYRING", e.Tenant, KeyID(e.Key))
	}
}

// Is reports whether the target is record.ErrNoKey, or record.ErrKeyMissing where that is so.
func (e *NoKeyError) Is(target error) bool {
	return target == record.ErrNoKey || target == record.ErrKeyMissing && e.Key != 0 && !e.Master
}

// DestroyedError says that the key was destroyed, with all that it had sealed. It is a record.ErrUnreadable.
type DestroyedError struct {
	Tenant string
	At     time.Time
}

func (e *DestroyedError) Error() string {
	return fmt.Sprintf("the key of tenant %s was destroyed on %s", e.Tenant, e.At.UTC().Format(time.DateOnly))
}

// Is reports whether the target is record.ErrUnreadable.
func (*DestroyedError) Is(target error) bool { return target == record.ErrUnreadable }
