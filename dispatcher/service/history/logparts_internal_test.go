package history

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Entries that are read in parts are kept while they are read, and no more of them than there is room for.
func TestEntriesKeptForTheirParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l logParts
		run := messages.Ref{Tenant: "default", Run: "huge"}
		keep := func(after uint64, size int) {
			l.keep(&keptEntry{run: run, after: after, seq: after + 1, data: make([]byte, size)})
		}
		has := func(want bool, after uint64) {
			t.Helper()
			if e, ok := l.find(run, after); ok != want || ok && e.seq != after+1 {
				t.Errorf("after %d: kept %v, want %v", after, ok, want)
			}
		}
		keep(1, maxPartsKept/2)
		keep(2, maxPartsKept/2)
		has(true, 1)
		has(false, 3)
		if _, ok := l.find(messages.Ref{Tenant: "other", Run: "huge"}, 1); ok {
			t.Error("another tenant's run has the entry")
		}
		keep(1, maxPartsKept/2) // another part of it was asked for
		keep(3, 1)
		has(true, 1)
		has(false, 2)
		has(true, 3)
		keep(4, maxPartsKept+1) // alone
		has(false, 1)
		has(false, 3)
		has(true, 4)
		keep(5, 1)
		has(false, 4)
		has(true, 5)
		e, _ := l.find(run, 5)
		l.drop(e)
		l.drop(e)
		has(false, 5)

		keep(6, 10)
		<-time.After(partsKeptFor / 2)
		keep(6, 10)
		<-time.After(partsKeptFor - 1)
		synctest.Wait()
		has(true, 6)
		<-time.After(1)
		synctest.Wait()
		has(false, 6)
		keep(7, 10)
		l.clear()
		has(false, 7)
		if l.size != 0 || len(l.kept) != 0 {
			t.Errorf("%d bytes of %d entries are left", l.size, len(l.kept))
		}
	})
}
