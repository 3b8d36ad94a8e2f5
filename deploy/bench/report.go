package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"time"
)

// Targets. What is compared are numbers of one run on one machine.
const (
	minFloorRatio    = 0.6
	maxTCPMillis     = 4.0
	maxEmbedMillis   = 2.0
	maxCapacityRatio = 1.10
	maxCapacityMB    = 300.0
	maxFairMillis    = 2000.0
)

// report prints the measurements and keeps what the summary needs. Its first error is kept.
type report struct {
	out     *json.Encoder
	err     error
	targets []target
}

// target is a number that must not be missed.
type target struct {
	Name    string   `json:"name"`
	Value   float64  `json:"value"`
	AtMost  *float64 `json:"atMost,omitempty"`
	AtLeast *float64 `json:"atLeast,omitempty"`
	Met     bool     `json:"met"`
}

func newReport(out io.Writer) *report { return &report{out: json.NewEncoder(out)} }

func (r *report) line(v any) {
	if err := r.out.Encode(v); err != nil && r.err == nil {
		r.err = fmt.Errorf("print: %w", err)
	}
}

func (r *report) atMost(name string, value, most float64) {
	r.targets = append(r.targets, target{Name: name, Value: value, AtMost: &most, Met: value <= most})
}

func (r *report) atLeast(name string, value, least float64) {
	r.targets = append(r.targets, target{Name: name, Value: value, AtLeast: &least, Met: value >= least})
}

func (r *report) submit(tasks, submitters int, took time.Duration) {
	r.line(struct {
		Name           string  `json:"name"`
		Tasks          int     `json:"tasks"`
		Submitters     int     `json:"submitters"`
		Seconds        float64 `json:"seconds"`
		TasksPerSecond float64 `json:"tasksPerSecond"`
	}{"submit", tasks, submitters, rounded(took.Seconds(), 3), rounded(float64(tasks)/took.Seconds(), 0)})
}

func (r *report) admitted(way string, tasks, submitters int, took time.Duration) {
	r.line(struct {
		Name           string  `json:"name"`
		Way            string  `json:"way"`
		Tasks          int     `json:"tasks"`
		Submitters     int     `json:"submitters"`
		Seconds        float64 `json:"seconds"`
		TasksPerSecond float64 `json:"tasksPerSecond"`
	}{"admission", way, tasks, submitters, rounded(took.Seconds(), 3), rounded(float64(tasks)/took.Seconds(), 0)})
}

func (r *report) firstEvent(way string, series []time.Duration) {
	r.line(struct {
		Name string  `json:"name"`
		Way  string  `json:"way"`
		Runs int     `json:"runs"`
		P50  float64 `json:"submitToFirstEventP50Ms"`
		P99  float64 `json:"submitToFirstEventP99Ms"`
	}{"firstEvent", way, len(series), millis(percentile(series, 0.50)), millis(percentile(series, 0.99))})
}

func (r *report) watchers(n, runs int, joined time.Duration, rounds []time.Duration, before, with, after usage) {
	usual := slices.Clone(rounds[:len(rounds)-1])
	slices.Sort(usual)
	each := (float64(with.InUseBytes) - float64(before.InUseBytes)) / float64(n)
	r.line(struct {
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
		"watchers", n, runs, rounded(joined.Seconds(), 3), rounded(each, 0), megabytes(after.PeakBytes), millis(percentile(usual, 0.50)),
		millis(rounds[len(rounds)-1]), before.Goroutines, with.Goroutines, after.Goroutines,
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
}

func newCosts(p plan, c cost) costs {
	per := func(v float64) float64 { return rounded(v/float64(c.runs), 1) }
	return costs{
		Runs: c.ended, Concurrent: p.Slots, Seconds: rounded(c.span.Seconds(), 3), RunsPerSecond: rounded(c.rate(), 0),
		WorkCPU: per(c.work.CPUSeconds * 1e6), ServersCPU: per(c.servers.CPUSeconds * 1e6), RedisCPU: per(c.servers.RedisSeconds * 1e6),
		MessagesIn: per(float64(c.traffic.InMsgs)), MessagesOut: per(float64(c.traffic.OutMsgs)),
		BytesIn: per(float64(c.traffic.InBytes)), BytesOut: per(float64(c.traffic.OutBytes)),
		PeakMB: megabytes(c.peakMemory), Redis: c.redisName,
	}
}

func (r *report) throughput(p plan, c cost, s shape) {
	r.line(struct {
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
		"throughput", newCosts(p, c), len(s.Appends), s.logBytes(), s.events(), s.eventBytes(),
		rounded(s.States, 2), rounded(float64(c.work.Saves)/float64(c.runs), 2), s.StateBytes,
	})
}

func (r *report) floor(p plan, at round) {
	r.line(struct {
		Name string `json:"name"`
		costs
		Ratio    float64 `json:"throughputOfFloor"`
		CPURatio float64 `json:"throughputOfFloorByCpu"`
	}{"floor", newCosts(p, at.floor), rounded(at.ratio(), 3), rounded(at.cpuRatio(), 3)})
}

// ratio is the median of the rounds.
func (r *report) ratio(rounds []round) {
	slices.SortFunc(rounds, func(a, b round) int { return cmp.Compare(a.ratio(), b.ratio()) })
	r.atLeast("throughputOfFloor", rounded(rounds[len(rounds)/2].ratio(), 3), minFloorRatio)
}

func (r *report) latency(way string, l latencies) {
	ms := func(series []time.Duration, p float64) float64 { return millis(percentile(series, p)) }
	p50 := ms(l.result, 0.50)
	r.line(struct {
		Name        string  `json:"name"`
		Way         string  `json:"way"`
		Runs        int     `json:"runs"`
		ResultMin   float64 `json:"submitToResultMinMs"`
		ResultP50   float64 `json:"submitToResultP50Ms"`
		ResultP99   float64 `json:"submitToResultP99Ms"`
		FinishedP50 float64 `json:"submitToFinishedEventP50Ms"`
		FinishedP99 float64 `json:"submitToFinishedEventP99Ms"`
	}{"latency", way, len(l.result), ms(l.result, 0), p50, ms(l.result, 0.99), ms(l.finished, 0.50), ms(l.finished, 0.99)})
	most := maxTCPMillis
	if way == "embedded" {
		most = maxEmbedMillis
	}
	r.atMost("latencyP50Ms."+way, p50, most)
}

func (r *report) capacity(p plan, took time.Duration, u usage) {
	ideal := 3 * p.ModelDelay
	ratio := rounded(took.Seconds()/ideal.Seconds(), 3)
	r.line(struct {
		Name    string  `json:"name"`
		Runs    int     `json:"runs"`
		Ideal   float64 `json:"idealSeconds"`
		Seconds float64 `json:"seconds"`
		Ratio   float64 `json:"ofIdeal"`
		PeakMB  float64 `json:"workerPeakResidentMb"`
		CPU     float64 `json:"workerCpuSeconds"`
	}{"capacity", p.CapacityRuns, ideal.Seconds(), rounded(took.Seconds(), 3), ratio, megabytes(u.PeakBytes), rounded(u.CPUSeconds, 2)})
	r.atMost("capacityOfIdeal", ratio, maxCapacityRatio)
	r.atMost("capacityPeakResidentMb", megabytes(u.PeakBytes), maxCapacityMB)
}

func (r *report) fairness(p plan, waits []time.Duration, left int) {
	r.line(struct {
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
		"fairness", p.Backlog, left, p.FairSlots, millis(p.FairDelay), len(waits),
		millis(percentile(waits, 0.5)), millis(percentile(waits, 0.99)), millis(waits[len(waits)-1]),
	})
	r.atMost("fairnessMaxMs", millis(waits[len(waits)-1]), maxFairMillis)
}

// summary prints the last line.
func (r *report) summary() error {
	all := true
	for _, t := range r.targets {
		all = all && t.Met
	}
	r.line(struct {
		Name    string   `json:"name"`
		CPUs    int      `json:"cpus"`
		Targets []target `json:"targets"`
		Met     bool     `json:"met"`
	}{"summary", runtime.NumCPU(), r.targets, all})
	return r.err
}

func rounded(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

func millis(d time.Duration) float64 { return rounded(float64(d.Microseconds())/1000, 3) }

func megabytes(n uint64) float64 { return rounded(float64(n)/1e6, 1) }
