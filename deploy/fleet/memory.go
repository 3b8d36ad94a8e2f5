package fleet

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The heap may become this large before it is collected: the base and what each slot of a worker adds, which is twice
// what a run that waits for its model holds.
const (
	baseHeap = 48 << 20
	slotHeap = 25 << 10
	// Until it is collected for the first time, with the GOGC that is usual.
	firstHeap    = 4 << 20
	usualPercent = 100
)

// lookAtHeap is how often KeepHeap looks.
const lookAtHeap = 100 * time.Millisecond

// KeepHeap collects the garbage of a worker, or with no slots of a dispatcher, when that costs least, until ctx ends. The
// heap may grow to the size that fits the slots, however little of it lives; where more than half of that lives it is
// collected as usual. And while little happens, what has piled up is collected then: when thousands of runs hear from
// their models the next time, the processor is theirs.
//
// It sets what is the whole process's. An operator's GOGC goes before it: call it only without one.
func KeepHeap(ctx context.Context, slots int) {
	goal := uint64(baseHeap + slots*slotHeap)
	before := debug.SetGCPercent(gcPercent(goal, heap{}))
	defer debug.SetGCPercent(before)
	ticker := time.NewTicker(lookAtHeap)
	defer ticker.Stop()
	for last := (heap{}); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := readHeap()
		if now.cycles != last.cycles {
			debug.SetGCPercent(gcPercent(goal, now))
		}
		if now.idle(last, goal) {
			runtime.GC()
		}
		last = now
	}
}

// heap is the state of the heap, in bytes.
type heap struct {
	cycles    uint64 // how often it was collected
	live      uint64 // what the last collection left
	roots     uint64 // what else it looked at: stacks and globals
	used      uint64 // what lives and what is garbage
	allocated uint64 // since the process began
}

func readHeap() heap {
	s := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(s)
	n := func(i int) uint64 { return s[i].Value.Uint64() }
	return heap{cycles: n(0), live: n(1), roots: n(2) + n(3), used: n(4), allocated: n(5)}
}

// gcPercent is the GOGC with which the heap grows to the goal, by the formula of https://go.dev/doc/gc-guide, or that of
// Go where this would be less.
func gcPercent(goal uint64, h heap) int {
	if goal <= h.live {
		return usualPercent
	}
	percent := min((goal-h.live)*100/(h.live+h.roots+1), goal*100/firstHeap)
	return int(max(usualPercent, percent))
}

// idle reports whether little was allocated since the last look, and a collection is worth its while.
func (h heap) idle(last heap, goal uint64) bool {
	const (
		little = 100 // a hundredth of the goal
		enough = 4   // a quarter of what it may grow by
	)
	return h.allocated-last.allocated < goal/little && goal > 2*h.live && h.used > h.live+(goal-h.live)/enough
}
