package measure

// Usage is what a process has used since it began.
type Usage struct {
	CPUSeconds   float64 `json:"cpuSeconds"`
	PeakBytes    uint64  `json:"peakBytes"` // resident, at most
	Resident     uint64  `json:"resident"`  // now
	RedisSeconds float64 `json:"redisSeconds,omitempty"`
	Wakeups      int64   `json:"wakeups,omitempty"` // how often a thread went to sleep by itself

	Saves     uint64 `json:"saves,omitempty"`     // states handed to short-term memory
	SaveBytes uint64 `json:"saveBytes,omitempty"` // their size
	Written   uint64 `json:"written,omitempty"`   // states that arrived there: a newer one replaces one that waits
	Dropped   uint64 `json:"dropped,omitempty"`

	LiveBytes  uint64 `json:"liveBytes,omitempty"`  // of the heap, after the last garbage collection, of servers
	InUseBytes uint64 `json:"inUseBytes,omitempty"` // heap and stacks now, of a dispatcher
	Goroutines int    `json:"goroutines,omitempty"` // likewise
}

// Minus is what was used since before; memory is that of now.
func (u Usage) Minus(before Usage) Usage {
	return Usage{
		CPUSeconds: u.CPUSeconds - before.CPUSeconds, PeakBytes: u.PeakBytes, Resident: u.Resident, RedisSeconds: u.RedisSeconds - before.RedisSeconds,
		Wakeups: u.Wakeups - before.Wakeups,
		Saves:   u.Saves - before.Saves, SaveBytes: u.SaveBytes - before.SaveBytes,
		Written: u.Written - before.Written, Dropped: u.Dropped - before.Dropped,
	}
}
