package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
)

// Targets. What is compared are numbers of one run on one machine.
const (
	minFloorRatio    = 0.6
	maxTCPRatio      = 1.3
	maxEmbedRatio    = 2.0
	maxCapacityRatio = 1.10
	maxCapacityMB    = 300.0
	maxFairMillis    = 2000.0
)

// report prints the measurements.
type report struct{ *measure.Report }

func (r *report) submit(tasks, submitters int, took time.Duration) {
	r.Line(struct {
		Name           string  `json:"name"`
		Tasks          int     `json:"tasks"`
		Submitters     int     `json:"submitters"`
		Seconds        float64 `json:"seconds"`
		TasksPerSecond float64 `json:"tasksPerSecond"`
	}{"submit", tasks, submitters, measure.Rounded(took.Seconds(), 3), measure.Rounded(float64(tasks)/took.Seconds(), 0)})
}

func (r *report) admitted(way string, tasks, submitters int, took time.Duration) {
	r.Line(struct {
		Name           string  `json:"name"`
		Way            string  `json:"way"`
		Tasks          int     `json:"tasks"`
		Submitters     int     `json:"submitters"`
		Seconds        float64 `json:"seconds"`
		TasksPerSecond float64 `json:"tasksPerSecond"`
	}{"admission", way, tasks, submitters, measure.Rounded(took.Seconds(), 3), measure.Rounded(float64(tasks)/took.Seconds(), 0)})
}

func (r *report) firstEvent(way string, series []time.Duration) {
	r.Line(struct {
		Name string  `json:"name"`
		Way  string  `json:"way"`
		Runs int     `json:"runs"`
		P50  float64 `json:"submitToFirstEventP50Ms"`
		P99  float64 `json:"submitToFirstEventP99Ms"`
	}{"firstEvent", way, len(series), measure.Millis(measure.Percentile(series, 0.50)), measure.Millis(measure.Percentile(series, 0.99))})
}

func (r *report) watchers(n, runs int, joined time.Duration, rounds []time.Duration, before, with, after measure.Usage) {
	usual := slices.Clone(rounds[:len(rounds)-1])
	slices.Sort(usual)
	each := (float64(with.InUseBytes) - float64(before.InUseBytes)) / float64(n)
	r.Line(struct {
		Name     string  `json:"name"`
		Watchers int     `json:"watchers"`
		Runs     int     `json:"runs"`
		Joined   float64 `json:"joinedSeconds"`
		Each     float64 `json:"bytesPerWatcher"`
		PeakMB   float64 `json:"dispatcherPeakResidentMb"`
		ToAll    float64 `json:"eventToAllP50Ms"`
		// With a tenth of the watchers vanished, and as many as a fiftieth of them in addition that read nothing.
		Disturbed float64 `json:"eventToAllDisturbedMs"`
		Before    int     `json:"goroutinesBefore"`
		With      int     `json:"goroutinesWith"`
		After     int     `json:"goroutinesAfter"`
	}{
		"watchers", n, runs, measure.Rounded(joined.Seconds(), 3), measure.Rounded(each, 0), measure.Megabytes(after.PeakBytes), measure.Millis(measure.Percentile(usual, 0.50)),
		measure.Millis(rounds[len(rounds)-1]), before.Goroutines, with.Goroutines, after.Goroutines,
	})
}

// costs are the fields of a run's cost.
type costs struct {
	Runs          int     `json:"runs"`
	Concurrent    int     `json:"concurrent"`
	Seconds       float64 `json:"seconds"`
	RunsPerSecond float64 `json:"runsPerSecond"`
	// CPU time per run, of the process that works, of the servers (NATS, and the embedded Redis if that is used), of redis-server.
	WorkCPU    float64 `json:"workCpuMicrosPerRun"`
	ServersCPU float64 `json:"serversCpuMicrosPerRun"`
	RedisCPU   float64 `json:"redisCpuMicrosPerRun"`
	// Messages on the connection of the process that works, as the server counts them.
	MessagesIn  float64 `json:"messagesToServerPerRun"`
	MessagesOut float64 `json:"messagesFromServerPerRun"`
	BytesIn     float64 `json:"bytesToServerPerRun"`
	BytesOut    float64 `json:"bytesFromServerPerRun"`
	PeakMB      float64 `json:"workPeakResidentMb"`
	Redis       string  `json:"redis"`
	Replicas    int     `json:"replicas"`
	Partitions  int     `json:"partitions"`
}

func newCosts(p plan, c cost) costs {
	per := func(v float64) float64 { return measure.Rounded(v/float64(c.runs), 1) }
	return costs{
		Runs: c.ended, Concurrent: p.Slots, Seconds: measure.Rounded(c.span.Seconds(), 3), RunsPerSecond: measure.Rounded(c.rate(), 0),
		WorkCPU: per(c.work.CPUSeconds * 1e6), ServersCPU: per(c.servers.CPUSeconds * 1e6), RedisCPU: per(c.servers.RedisSeconds * 1e6),
		MessagesIn: per(float64(c.traffic.InMsgs)), MessagesOut: per(float64(c.traffic.OutMsgs)),
		BytesIn: per(float64(c.traffic.InBytes)), BytesOut: per(float64(c.traffic.OutBytes)),
		PeakMB: measure.Megabytes(c.peakMemory), Redis: c.redisName, Replicas: c.replicas, Partitions: c.partitions,
	}
}

func (r *report) throughput(p plan, c cost, s stage.Shape) {
	r.Line(struct {
		Name string `json:"name"`
		costs
		Appends    int     `json:"appendsPerRun"`
		LogBytes   int     `json:"logBytesPerRun"`
		Events     int     `json:"eventsPerRun"`
		EventBytes int     `json:"eventBytesPerRun"`
		States     float64 `json:"statesWrittenPerRun"`
		Saved      float64 `json:"statesSavedPerRun"`
		StateBytes int     `json:"bytesPerState"`
	}{
		"throughput", newCosts(p, c), len(s.Appends), s.LogBytes(), s.EventCount(), s.EventBytes(),
		measure.Rounded(s.States, 2), measure.Rounded(float64(c.work.Saves)/float64(c.runs), 2), s.StateBytes,
	})
}

func (r *report) floor(p plan, at round) {
	r.Line(struct {
		Name string `json:"name"`
		costs
		Ratio    float64 `json:"throughputOfFloor"`
		CPURatio float64 `json:"throughputOfFloorByCpu"`
	}{"floor", newCosts(p, at.floor), measure.Rounded(at.ratio(), 3), measure.Rounded(at.cpuRatio(), 3)})
}

// ratio is the median of the rounds.
func (r *report) ratio(rounds []round) {
	slices.SortFunc(rounds, func(a, b round) int { return cmp.Compare(a.ratio(), b.ratio()) })
	r.AtLeast("throughputOfFloor", measure.Rounded(rounds[len(rounds)/2].ratio(), 3), minFloorRatio)
}

func (r *report) latency(way string, ours, floor latencies, most float64) {
	ms := func(series []time.Duration, p float64) float64 { return measure.Millis(measure.Percentile(series, p)) }
	p50, floor50 := ms(ours.result, 0.50), ms(floor.result, 0.50)
	ratio := measure.Rounded(p50/floor50, 3)
	r.Line(struct {
		Name          string  `json:"name"`
		Way           string  `json:"way"`
		Runs          int     `json:"runs"`
		ResultMin     float64 `json:"submitToResultMinMs"`
		ResultP50     float64 `json:"submitToResultP50Ms"`
		ResultP99     float64 `json:"submitToResultP99Ms"`
		FinishedP50   float64 `json:"submitToFinishedEventP50Ms"`
		FinishedP99   float64 `json:"submitToFinishedEventP99Ms"`
		FloorMin      float64 `json:"floorSubmitToResultMinMs"`
		FloorResult   float64 `json:"floorSubmitToResultP50Ms"`
		FloorFinished float64 `json:"floorSubmitToFinishedEventP50Ms"`
		Ratio         float64 `json:"latencyOfFloor"`
	}{
		"latency", way, len(ours.result), ms(ours.result, 0), p50, ms(ours.result, 0.99), ms(ours.finished, 0.50), ms(ours.finished, 0.99),
		ms(floor.result, 0), floor50, ms(floor.finished, 0.50), ratio,
	})
	r.AtMost("latencyOfFloor."+way, ratio, most)
}

func (r *report) capacity(p plan, took time.Duration, u measure.Usage) {
	ideal := 3 * p.ModelDelay
	ratio := measure.Rounded(took.Seconds()/ideal.Seconds(), 3)
	r.Line(struct {
		Name    string  `json:"name"`
		Runs    int     `json:"runs"`
		Ideal   float64 `json:"idealSeconds"`
		Seconds float64 `json:"seconds"`
		Ratio   float64 `json:"ofIdeal"`
		PeakMB  float64 `json:"workerPeakResidentMb"`
		CPU     float64 `json:"workerCpuSeconds"`
	}{"capacity", p.CapacityRuns, ideal.Seconds(), measure.Rounded(took.Seconds(), 3), ratio, measure.Megabytes(u.PeakBytes), measure.Rounded(u.CPUSeconds, 2)})
	r.AtMost("capacityOfIdeal", ratio, maxCapacityRatio)
	r.AtMost("capacityPeakResidentMb", measure.Megabytes(u.PeakBytes), maxCapacityMB)
}

func (r *report) fairness(p plan, waits []time.Duration, left int) {
	r.Line(struct {
		Name    string  `json:"name"`
		Backlog int     `json:"backlog"`
		Left    int     `json:"backlogLeft"` // at the end; the measurement is of those that wait during one
		Slots   int     `json:"slots"`
		Delay   float64 `json:"modelDelayMs"`
		Runs    int     `json:"runs"`
		P50     float64 `json:"submitToStartP50Ms"`
		P99     float64 `json:"submitToStartP99Ms"`
		Max     float64 `json:"submitToStartMaxMs"`
	}{
		"fairness", p.Backlog, left, p.FairSlots, measure.Millis(p.FairDelay), len(waits),
		measure.Millis(measure.Percentile(waits, 0.5)), measure.Millis(measure.Percentile(waits, 0.99)), measure.Millis(waits[len(waits)-1]),
	})
	r.AtMost("fairnessMaxMs", measure.Millis(waits[len(waits)-1]), maxFairMillis)
}
