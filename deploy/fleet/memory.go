package fleet

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/longshore-run/longshore/deploy/hostmemory"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/worker/memorylimit"
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

// How often KeepHeap looks: from the one to the other, twice as long after each look at which next to nothing had been allocated.
// However long it waits, it looks once more after each collection.
const (
	lookAtHeap    = 100 * time.Millisecond
	longestLook   = 10 * time.Second
	nextToNothing = 1 << 20
)

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
	collected := make(chan struct{}, 1)
	afterCollection(collected)
	wait := lookAtHeap
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for last := (heap{}); ; {
		select {
		case <-ctx.Done():
			return
		case <-collected:
			afterCollection(collected)
		case <-timer.C:
		}
		now := readHeap()
		if wait = min(2*wait, longestLook); now.allocated-last.allocated > nextToNothing {
			wait = lookAtHeap
		}
		timer.Reset(wait)
		if now.cycles != last.cycles {
			debug.SetGCPercent(gcPercent(goal, now))
		}
		if now.idle(last, goal) {
			runtime.GC()
		}
		last = now
	}
}

// afterCollection sends on a channel, unless it is full, after the next collection.
func afterCollection(collected chan struct{}) {
	witness := new([16]byte) // of a size that shares no block with others
	runtime.AddCleanup(witness, func(collected chan struct{}) {
		select {
		case collected <- struct{}{}:
		default:
		}
	}, collected)
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

// budgetOf is what of a worker's memory runs may hold as far as they are counted: the rest is garbage that is not collected yet, and what
// the worker itself takes.
func budgetOf(limit int64) int64 { return limit - limit/3 }

// RunBudget is what the runs of a worker may hold together. Without a limit for its process that is a part of what Go was told, or of what
// the machine has.
func RunBudget(l settings.MemoryLimit) *memorylimit.Budget {
	return memorylimit.New(budgetOf(memoryLimit(l)))
}

// memoryLimit is how much memory the process may take, in bytes: as the operator says, or else as Go was told.
func memoryLimit(s settings.MemoryLimit) int64 {
	if s.Bytes > 0 {
		return s.Bytes
	}
	if told := debug.SetMemoryLimit(-1); told < math.MaxInt64 { // which only reads it
		return told
	}
	return hostmemory.Limit()
}
