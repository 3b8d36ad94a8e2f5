package fleet

import "runtime/debug"

const (
	// fewSlots is how many runs a worker may work and still be called small: their states take some 20 MB.
	fewSlots = 1024
	// smallHeapGC is the collector's target of a small worker, in percent. Its live heap is so small that the default of
	// 100 collects many times a second under load, for a few megabytes saved.
	smallHeapGC = 300
)

// TuneGC lets a worker with few slots collect less often. With many slots memory is what is short, and the default
// holds. An operator's GOGC goes before it: call it only without one.
func TuneGC(slots int) {
	if slots <= fewSlots {
		debug.SetGCPercent(smallHeapGC)
	}
}
