package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
)

// save stores what a manifest names and the one before it does not, then the manifest, and refers to it. The files are read from the
// folder once more, and verified: one that is no longer what was scanned is errChanged. It returns the manifest's hash.
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
	if err := s.Put(ctx, tenant, file.Hash, file.Size, &verified{r: f, left: file.Size, sum: sha256.New(), hash: file.Hash}); err != nil {
		return fmt.Errorf("store %s: %w", file.Path, err)
	}
	return nil
}

// verified reads so many bytes, and ends with an error unless they are all and have the hash.
type verified struct {
	r    io.Reader
	left int64
	sum  hash.Hash
	hash string
}

// Read implements io.Reader.
func (v *verified) Read(p []byte) (int, error) {
	if v.left == 0 {
		if hex.EncodeToString(v.sum.Sum(nil)) != v.hash {
			return 0, errChanged
		}
		return 0, io.EOF
	}
	n, err := v.r.Read(p[:min(int64(len(p)), v.left)])
	v.left -= int64(n)
	_, _ = v.sum.Write(p[:n]) // it never fails
	if errors.Is(err, io.EOF) {
		if err = nil; v.left > 0 {
			return n, errChanged
		}
	}
	return n, err
}
