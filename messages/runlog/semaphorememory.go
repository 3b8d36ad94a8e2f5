package runlog

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
)

// SemaphoresInMemory are Semaphores in memory, to use with a Memory. The zero value is empty.
type SemaphoresInMemory struct {
	mu       sync.Mutex
	sequence uint64
	byName   map[string]*keptSemaphore
}

type keptSemaphore struct {
	queue.Semaphore
	revision uint64
	waits    []waitsAt // in the order of their positions
}

type waitsAt struct {
	run messages.Ref
	at  uint64
}

var _ Semaphores = (*SemaphoresInMemory)(nil)

// kept is a semaphore to be changed. The caller holds mu.
func (m *SemaphoresInMemory) kept(name string) *keptSemaphore {
	if m.byName == nil {
		m.byName = map[string]*keptSemaphore{}
	}
	if m.byName[name] == nil {
		m.byName[name] = &keptSemaphore{}
	}
	return m.byName[name]
}

// Semaphore implements Semaphores.
func (m *SemaphoresInMemory) Semaphore(_ context.Context, name string) (queue.Semaphore, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kept(name)
	l := k.Semaphore
	l.Permits = slices.Clone(l.Permits)
	return l, k.revision, nil
}

// PutSemaphore implements Semaphores.
func (m *SemaphoresInMemory) PutSemaphore(_ context.Context, name string, revision uint64, l queue.Semaphore) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kept(name)
	if k.revision != revision {
		return ErrConflict
	}
	m.sequence++
	k.Semaphore, k.revision = l, m.sequence
	return nil
}

// Wait implements Semaphores.
func (m *SemaphoresInMemory) Wait(_ context.Context, name string, run messages.Ref) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kept(name)
	if k.waiting(run) == 0 {
		m.sequence++
		k.waits = append(k.waits, waitsAt{run, m.sequence})
	}
	return nil
}

func (k *keptSemaphore) waiting(run messages.Ref) uint64 {
	for _, w := range k.waits {
		if w.run == run {
			return w.at
		}
	}
	return 0
}

// Waiting implements Semaphores.
func (m *SemaphoresInMemory) Waiting(_ context.Context, name string, run messages.Ref) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept(name).waiting(run), nil
}

// First implements Semaphores.
func (m *SemaphoresInMemory) First(_ context.Context, name string) (messages.Ref, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kept(name); len(k.waits) > 0 {
		return k.waits[0].run, k.waits[0].at, nil
	}
	return messages.Ref{}, 0, nil
}

// Unwait implements Semaphores.
func (m *SemaphoresInMemory) Unwait(_ context.Context, name string, _ messages.Ref, at uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kept(name)
	k.waits = slices.DeleteFunc(k.waits, func(w waitsAt) bool { return w.at == at })
	return nil
}

// Semaphores implements Semaphores.
func (m *SemaphoresInMemory) Semaphores(context.Context) iter.Seq2[string, error] {
	m.mu.Lock()
	names := slices.Sorted(maps.Keys(m.byName))
	m.mu.Unlock()
	return func(yield func(string, error) bool) {
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}
}

// Lose forgets all semaphores, as a purge of what holds them does.
func (m *SemaphoresInMemory) Lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byName = nil
}
