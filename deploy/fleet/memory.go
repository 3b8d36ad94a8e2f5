package fleet

import "runtime/debug"

const (
	fewSlots = 1024 // so many runs take some 20 MB
	// The live heap of few runs is so small that the default of 100 percent collects many times a second under load, for
	// a few megabytes saved.
	smallHeapGC = 300
)

// TuneGC lets a worker with few slots collect less often. With many slots memory is what is short, and the default
// holds. An operator's GOGC goes before it: call it only without one.
func TuneGC(slots int) {
	if slots <= fewSlots {
		debug.SetGCPercent(smallHeapGC)
	}
}
