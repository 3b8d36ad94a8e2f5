package fleet

import "runtime/debug"

const (
	fewSlots = 1024 // so many runs take some 20 MB
	// The live heap of few runs is so small that the default of 100 percent collects many times a second under load, for
	// a few megabytes saved.
	smallHeapGC = 300
	// When thousands of runs hear from their models at once the collector takes what they need. Of 5,000 that wait a tenth of
	// the processor's time is worth 30 MB.
	largeHeapGC = 150
)

// TuneGC lets a worker collect less often, the fewer slots it has. An operator's GOGC goes before it: call it only
// without one.
func TuneGC(slots int) {
	if slots <= fewSlots {
		debug.SetGCPercent(smallHeapGC)
		return
	}
	debug.SetGCPercent(largeHeapGC)
}
