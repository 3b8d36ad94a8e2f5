package memory

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// Sealer encrypts values with a key of the tenant. Safe for concurrent use.
type Sealer interface {
	// Seal encrypts plain and binds it to where it stands. It may return plain as it is, when nothing is to be encrypted.
	Seal(ctx context.Context, tenant string, plain, at []byte) ([]byte, error)
	// Open undoes Seal; it fails when anything is not as it was. What was never sealed it returns as it is, or refuses.
	Open(ctx context.Context, tenant string, value, at []byte) ([]byte, error)
}

// sealRoom is what sealing may add to a value, in bytes.
const sealRoom = 64

// open is the Sealer of a memory that has none.
type open struct{}

func (open) Seal(_ context.Context, _ string, plain, _ []byte) ([]byte, error) { return plain, nil }
func (open) Open(_ context.Context, _ string, value, _ []byte) ([]byte, error) { return value, nil }

// statePlace is what the state of a run is bound to: neither another run nor another entry of its log may have it, and no other use of
// this Redis. Only the first part may have a line break in it.
func (s *ShortTerm) statePlace(run messages.Ref, seq uint64, entry string) []byte {
	return fmt.Appendf(nil, "longshore state 1\n%s\n%s\n%s\n%d\n%s", s.config.Prefix, run.Tenant, run.Run, seq, entry)
}
