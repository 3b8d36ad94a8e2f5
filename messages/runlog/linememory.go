package runlog

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/longshore-run/longshore/messages"
)

// LinesInMemory are Lines in memory, beside a Memory. The zero value is empty.
type LinesInMemory struct {
	mu       sync.Mutex
	sequence uint64
	byName   map[string]*keptLine
}

type keptLine struct {
	messages.Line
	revision uint64
	waits    []waitsAt // in the order of their positions
}

type waitsAt struct {
	run messages.Ref
	at  uint64
}

var _ Lines = (*LinesInMemory)(nil)

// kept is a line to be changed. The caller holds mu.
func (m *LinesInMemory) kept(line string) *keptLine {
	if m.byName == nil {
		m.byName = map[string]*keptLine{}
	}
	if m.byName[line] == nil {
		m.byName[line] = &keptLine{}
	}
	return m.byName[line]
}

// Line implements Lines.
func (m *LinesInMemory) Line(_ context.Context, line string) (messages.Line, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kept(line)
	l := k.Line
	l.Places = slices.Clone(l.Places)
	return l, k.revision, nil
}

// PutLine implements Lines.
func (m *LinesInMemory) PutLine(_ context.Context, line string, revision uint64, l messages.Line) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kept(line)
	if k.revision != revision {
		return ErrConflict
	}
	m.sequence++
	k.Line, k.revision = l, m.sequence
	return nil
}

// Wait implements Lines.
func (m *LinesInMemory) Wait(_ context.Context, line string, run messages.Ref) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kept(line)
	if k.waiting(run) == 0 {
		m.sequence++
		k.waits = append(k.waits, waitsAt{run, m.sequence})
	}
	return nil
}

func (k *keptLine) waiting(run messages.Ref) uint64 {
	for _, w := range k.waits {
		if w.run == run {
			return w.at
		}
	}
	return 0
}

// Waiting implements Lines.
func (m *LinesInMemory) Waiting(_ context.Context, line string, run messages.Ref) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept(line).waiting(run), nil
}

// First implements Lines.
func (m *LinesInMemory) First(_ context.Context, line string) (messages.Ref, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kept(line); len(k.waits) > 0 {
		return k.waits[0].run, k.waits[0].at, nil
	}
	return messages.Ref{}, 0, nil
}

// Unwait implements Lines.
func (m *LinesInMemory) Unwait(_ context.Context, line string, _ messages.Ref, at uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kept(line)
	k.waits = slices.DeleteFunc(k.waits, func(w waitsAt) bool { return w.at == at })
	return nil
}

// Lines implements Lines.
func (m *LinesInMemory) Lines(context.Context) iter.Seq2[string, error] {
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

// Lose forgets all lines, as a purge of what holds them does.
func (m *LinesInMemory) Lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byName = nil
}
