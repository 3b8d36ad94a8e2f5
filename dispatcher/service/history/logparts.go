package history

import (
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Bounds of the large entries that are kept between two requests for parts of them.
const (
	maxPartsKept = 64 << 20         // in bytes; a larger entry is kept alone
	partsKeptFor = 30 * time.Second // after the last request for a part
)

// logParts keeps entries that are read in parts, as they are sent. Without it each part would need the whole entry fetched,
// decoded and encoded again. The zero value is empty.
type logParts struct {
	mu   sync.Mutex
	kept []*keptEntry // least recently used first
	size int
}

type keptEntry struct {
	run   messages.Ref
	after uint64 // the sequence after which the entry is asked for
	seq   uint64
	data  []byte
	old   *time.Timer // drops it
}

// find returns the first entry after a sequence of a log, if it is kept.
func (l *logParts) find(run messages.Ref, after uint64) (*keptEntry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.kept, func(e *keptEntry) bool { return e.run == run && e.after == after })
	if i < 0 {
		return nil, false
	}
	return l.kept[i], true
}

// keep keeps an entry for a while, instead of what was kept for the same sequence of the log, and drops the least recently used
// ones that there is no room for.
func (l *logParts) keep(e *keptEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(func(k *keptEntry) bool { return k.run == e.run && k.after == e.after })
	kept := *e // a reader may have the other one still
	kept.old = time.AfterFunc(partsKeptFor, func() { l.drop(&kept) })
	l.kept = append(l.kept, &kept)
	l.size += len(kept.data)
	for l.size > maxPartsKept && len(l.kept) > 1 {
		least := l.kept[0]
		l.remove(func(k *keptEntry) bool { return k == least })
	}
}

// drop drops an entry, if it is kept still.
func (l *logParts) drop(e *keptEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(func(k *keptEntry) bool { return k == e })
}

// clear drops all.
func (l *logParts) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(func(*keptEntry) bool { return true })
}

func (l *logParts) remove(which func(*keptEntry) bool) {
	l.kept = slices.DeleteFunc(l.kept, func(k *keptEntry) bool {
		if !which(k) {
			return false
		}
		k.old.Stop()
		l.size -= len(k.data)
		return true
	})
}
