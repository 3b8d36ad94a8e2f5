package snapshot

import (
	"context"
	"os"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
)

// ErrChanged is that of a file which is no longer what was scanned.
var ErrChanged = errChanged

// Tick is how old a change must be to be known from its time.
const Tick = 2 * tick

// SaveAll stores all that a manifest names.
func SaveAll(ctx context.Context, s Store, run messages.Ref, dir *os.Root, m *manifest.Manifest) (string, error) {
	return save(ctx, s, run, dir, nil, m)
}

// Restore writes the files of a manifest into a folder.
func Restore(ctx context.Context, s Store, tenant string, dir *os.Root, m *manifest.Manifest, l Limits) error {
	return restore(ctx, s, tenant, dir, m, l)
}
