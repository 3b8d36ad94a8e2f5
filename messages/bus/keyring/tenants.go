package keyring

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/strict"
)

// Tenant is what is known of the keyset of a tenant.
type Tenant struct {
	Name      string
	Master    uint32 // the key of the master keyset that it is encrypted with; 0: it was destroyed
	Made      time.Time
	Destroyed []Destruction
}

// Tenants yields the tenants that have, or had, a keyset, by name. It opens none of them. An error ends it.
func (k *Keyring) Tenants(ctx context.Context) iter.Seq2[Tenant, error] {
	return func(yield func(Tenant, error) bool) {
		for name, err := range k.stream().Subjects(ctx, bus.KeyringPrefix+"*") {
			if err != nil {
				yield(Tenant{}, fmt.Errorf("list keysets: %w", err))
				return
			}
			m, ok, err := k.stream().Get(ctx, bus.Lookup{Last: name})
			var s stored
			if err == nil && ok {
				err = strict.Decode(m.Data, &s)
			}
			if err != nil {
				yield(Tenant{}, fmt.Errorf("read keyset %s: %w", name, err))
				return
			}
			if ok && !yield(Tenant{strings.TrimPrefix(name, bus.KeyringPrefix), s.Master, s.Made, s.Destroyed}, nil) {
				return
			}
		}
	}
}
