package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages/manifest"
)

// load reads a manifest.
func load(ctx context.Context, s Store, tenant, hash string) (*manifest.Manifest, error) {
	var data bytes.Buffer
	if err := s.Get(ctx, tenant, hash, manifest.MaxEncoded, &data); err != nil {
		return nil, fmt.Errorf("read the list of files %s: %w", hash, err)
	}
	if manifest.HashOf(data.Bytes()) != hash {
		return nil, fmt.Errorf("read the list of files %s: %w", hash, manifest.ErrDamaged)
	}
	return manifest.Decode(data.Bytes())
}

// restore writes the files of a manifest into an empty folder that no one else writes to. After an error the folder has a part of them.
func restore(ctx context.Context, s Store, tenant string, dir *os.Root, m *manifest.Manifest, l Limits) error {
	l = l.withDefaults()
	if n := m.Bytes(); n > l.Total || len(m.Files)+len(m.Folders) > l.Files {
		return fmt.Errorf("the run has %d files and folders of %d bytes, and this worker takes %d of %d bytes: raise its limits", len(m.Files)+len(m.Folders), n, l.Files, l.Total)
	}
	made := map[string]bool{".": true}
	mkdir := func(p string) error {
		if made[p] {
			return nil
		}
		made[p] = true
		return dir.MkdirAll(p, 0o700)
	}
	for _, p := range m.Folders {
		if err := mkdir(p); err != nil {
			return fmt.Errorf("make folder %s: %w", p, err)
		}
	}
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	var err error
	for _, f := range m.Files {
		if err = mkdir(path.Dir(f.Path)); err != nil {
			err = fmt.Errorf("make folder of %s: %w", f.Path, err)
			break
		}
		group.Go(func() error { return restoreFile(each, s, tenant, dir, f) })
	}
	return errors.Join(err, group.Wait())
}

func restoreFile(ctx context.Context, s Store, tenant string, dir *os.Root, file manifest.File) error {
	mode := os.FileMode(0o600)
	if file.Exec {
		mode = 0o700
	}
	f, err := dir.OpenFile(file.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, mode)
	if err != nil {
		return fmt.Errorf("restore %s: %w", file.Path, err)
	}
	sum := sha256.New()
	err = s.Get(ctx, tenant, file.Hash, file.Size, io.MultiWriter(f, sum))
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != file.Hash {
		err = manifest.ErrDamaged
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("restore %s: %w", file.Path, err)
	}
	return nil
}
