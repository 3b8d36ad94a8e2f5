package main

// usage is what a process has used since it began.
type usage struct {
	CPUSeconds   float64 `json:"cpuSeconds"`
	PeakBytes    uint64  `json:"peakBytes"` // resident, at most
	RedisSeconds float64 `json:"redisSeconds,omitempty"`

	Saves     uint64 `json:"saves,omitempty"`     // states handed to short-term memory
	SaveBytes uint64 `json:"saveBytes,omitempty"` // their size
	Written   uint64 `json:"written,omitempty"`   // states that arrived there: a newer one replaces one that waits
	Dropped   uint64 `json:"dropped,omitempty"`

	InUseBytes uint64 `json:"inUseBytes,omitempty"` // heap and stacks now, of a dispatcher
	Goroutines int    `json:"goroutines,omitempty"` // likewise
}

// minus is what was used since before; the peak is that of now.
func (u usage) minus(before usage) usage {
	return usage{
		CPUSeconds: u.CPUSeconds - before.CPUSeconds, PeakBytes: u.PeakBytes, RedisSeconds: u.RedisSeconds - before.RedisSeconds,
		Saves: u.Saves - before.Saves, SaveBytes: u.SaveBytes - before.SaveBytes,
		Written: u.Written - before.Written, Dropped: u.Dropped - before.Dropped,
	}
}
