package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
)

// Memory is a Store in memory, for one process: tests, simulations, and programs that need no more. The zero value is empty. Safe
// for concurrent use.
type Memory struct {
	mu       sync.Mutex
	contents map[string][]byte // by tenant and hash
	refs     map[string]bool
}

var _ Store = (*Memory)(nil)

// Has implements Store.
func (m *Memory) Has(ctx context.Context, tenant, hash string) (bool, error) {
	_, ok, err := m.Stat(ctx, tenant, hash)
	return ok, err
}

// Stat implements Store.
func (m *Memory) Stat(_ context.Context, tenant, hash string) (size int64, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.contents[tenant+"."+hash]
	return int64(len(data)), ok, nil
}

// Put implements Store.
func (m *Memory) Put(_ context.Context, tenant, hash string, size int64, r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return err
	}
	if int64(len(data)) != size || manifest.HashOf(data) != hash {
		return fmt.Errorf("store %s: %w", hash, manifest.ErrDamaged)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.contents == nil {
		m.contents = map[string][]byte{}
	}
	m.contents[tenant+"."+hash] = data
	return nil
}

// Get implements Store.
func (m *Memory) Get(_ context.Context, tenant, hash string, size int64, w io.Writer) error {
	m.mu.Lock()
	data, ok := m.contents[tenant+"."+hash]
	m.mu.Unlock()
	switch {
	case !ok:
		return fmt.Errorf("content %s: %w", hash, manifest.ErrMissing)
	case int64(len(data)) > size:
		return fmt.Errorf("content %s: %w", hash, manifest.ErrDamaged)
	}
	_, err := io.Copy(w, bytes.NewReader(data))
	return err
}

// Refer implements Store.
func (m *Memory) Refer(_ context.Context, run messages.Ref, hash string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refs == nil {
		m.refs = map[string]bool{}
	}
	m.refs[run.String()+"/"+hash] = true
	return nil
}
