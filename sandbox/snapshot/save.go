package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
)

// save stores what a manifest names and the one before it does not, then the manifest, and refers to it. The files are read from the
// folder once more: one that is no longer what was scanned is errChanged. It returns the manifest's hash.
func save(ctx context.Context, s Store, run messages.Ref, dir *os.Root, before, m *manifest.Manifest) (string, error) {
	stored := map[string]bool{}
	if before != nil {
		for i := range before.Files {
			stored[before.Files[i].Hash] = true
		}
	}
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, f := range m.Files {
		if stored[f.Hash] {
			continue
		}
		stored[f.Hash] = true
		group.Go(func() error { return saveFile(each, s, run.Tenant, dir, f) })
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	data, hash, err := m.Encode()
	if err != nil {
		return "", err
	}
	if has, err := s.Has(ctx, run.Tenant, hash); err != nil {
		return "", fmt.Errorf("look for the list of files: %w", err)
	} else if !has {
		if err := s.Put(ctx, run.Tenant, hash, int64(len(data)), bytes.NewReader(data)); err != nil {
			return "", fmt.Errorf("store the list of files: %w", err)
		}
	}
	if err := s.Refer(ctx, run, hash); err != nil {
		return "", fmt.Errorf("refer to the list of files: %w", err)
	}
	return hash, nil
}

// saveFile stores the content of a file, if it is not stored.
func saveFile(ctx context.Context, s Store, tenant string, dir *os.Root, file manifest.File) error {
	has, err := s.Has(ctx, tenant, file.Hash)
	if err != nil {
		return fmt.Errorf("look for the content of %s: %w", file.Path, err)
	}
	if has {
		return nil
	}
	f, err := dir.OpenFile(file.Path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil { // whatever it is, the next scan will tell
		return errChanged
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errChanged
	}
	switch err := s.Put(ctx, tenant, file.Hash, file.Size, f); {
	case errors.Is(err, manifest.ErrDamaged):
		return errChanged
	case err != nil:
		return fmt.Errorf("store %s: %w", file.Path, err)
	}
	return nil
}
