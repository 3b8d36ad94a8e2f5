package runlog

import (
	"context"
	"sync"

	"github.com/longshore-run/longshore/messages"
)

// WorkspacesInMemory are Workspaces in memory, to use with a Memory. The zero value is empty.
type WorkspacesInMemory struct {
	mu       sync.Mutex
	revision uint64
	byName   map[[2]string]keptWorkspace
}

type keptWorkspace struct {
	messages.Workspace
	revision uint64
}

var _ Workspaces = (*WorkspacesInMemory)(nil)

// Workspace implements Workspaces.
func (m *WorkspacesInMemory) Workspace(_ context.Context, tenant, name string) (messages.Workspace, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.byName[[2]string{tenant, name}]
	return k.Workspace, k.revision, nil
}

// PutWorkspace implements Workspaces.
func (m *WorkspacesInMemory) PutWorkspace(_ context.Context, tenant, name string, revision uint64, w messages.Workspace) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{tenant, name}
	if m.byName[key].revision != revision {
		return ErrConflict
	}
	if m.byName == nil {
		m.byName = map[[2]string]keptWorkspace{}
	}
	m.revision++
	m.byName[key] = keptWorkspace{w, m.revision}
	return nil
}
