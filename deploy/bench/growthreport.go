package main

import (
	"cmp"

	"github.com/longshore-run/longshore/deploy/bench/measure"
)

// Targets of a fleet that retains runs, from so many on: below, what does not grow is most of it.
const (
	growthCounts  = 50_000
	minRebuilt    = 50_000.0
	maxQuestionMs = 200.0
	maxSweepCPU   = 1.0 // seconds, once all runs have settled
)

// growth says how much more the most runs cost than the fewest: what is as large as the runs are more is linear in them.
func (r *report) growth(sizes []growthSize, old sweeps) {
	r.Line(struct {
		Name string `json:"name"`
		sweeps
	}{"growthSettled", old})
	first, last := sizes[0], sizes[len(sizes)-1]
	of := func(most, fewest float64) float64 { return measure.Rounded(most/cmp.Or(fewest, 0.001), 2) }
	r.Line(struct {
		Name     string  `json:"name"`
		Runs     float64 `json:"runs"`
		NATS     float64 `json:"natsMb"`
		Sweep    float64 `json:"sweepCpu"`
		Doctor   float64 `json:"doctorRunsCpu"`
		List     float64 `json:"list"`
		Search   float64 `json:"searchCpu"`
		Stats    float64 `json:"statsCpu"`
		Status   float64 `json:"status"`
		Log      float64 `json:"log"`
		Rebuild  float64 `json:"indexRebuildCpu"`
		NATSUp   float64 `json:"natsRestartCpu"`
		Dispatch float64 `json:"dispatcherRestart"`
	}{
		"growthOfFirst", of(float64(last.Retained), float64(first.Retained)), of(last.NATSMB, first.NATSMB), of(last.SweepCPU, first.SweepCPU),
		of(last.DoctorCPU, first.DoctorCPU), of(last.List, first.List), of(last.SearchCPU, first.SearchCPU), of(last.StatsCPU, first.StatsCPU),
		of(last.Status, first.Status), of(last.Log, first.Log), of(last.RebuildCPU, first.RebuildCPU), of(last.NATSStartCPU, first.NATSStartCPU),
		of(last.DispatchStart, first.DispatchStart),
	})
	if last.Retained < growthCounts {
		return
	}
	r.AtMost("growthNatsSettledBytesPerRun", last.PerRun, maxMemoryPerRun)
	r.AtLeast("growthIndexRebuildEventsPerSecond", last.Rebuilt, minRebuilt)
	r.AtMost("growthListMs", last.List, maxQuestionMs)
	r.AtMost("growthStatsMs", last.Stats, maxQuestionMs)
	r.AtMost("growthSettledSweepCpuSeconds", old.SweepCPU, maxSweepCPU)
	r.AtMost("growthSettledDoctorRunsCpuSeconds", old.DoctorCPU, maxSweepCPU)
}
