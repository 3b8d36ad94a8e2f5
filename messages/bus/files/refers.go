package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Refers reports whether a run refers to a manifest.
func (st *Store) Refers(ctx context.Context, run messages.Ref, hash string) (bool, error) {
	if err := errors.Join(run.Check(), check(run.Tenant, hash)); err != nil {
		return false, err
	}
	_, ok, err := st.stream().Get(ctx, bus.Lookup{Last: RefsPrefix(run) + hash})
	if err != nil {
		return false, fmt.Errorf("look for the files of %s: %w", run, err)
	}
	return ok, nil
}
