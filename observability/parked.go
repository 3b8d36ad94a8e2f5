package observability

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	maxParked   = 1_000_000 // runs that are remembered; more are not counted
	maxResumed  = 10_000    // runs that continued, of which the newest event is remembered; at most twice as many
	parkedPause = 5 * time.Second

	// A run whose log could not be read to its end has run_finished and no run_resumed. All ends would cost what ended; so
	// some of those that wait are looked at, at random.
	endedEvery = 2 * time.Second
	endedMost  = 16
)

// parked are the runs that wait, from the events that begin and end their waits. It reads those that are kept when it
// begins, so a run whose wait is older than the events that are kept is not counted.
type parked struct {
	reasons *openLabel

	mu    sync.Mutex
	runs  map[messages.Ref]wait
	whole bool // all that is kept was read
	// The number of the event with which a run continued: the one with which it began to wait may be stored later. When
	// resumed is full it replaces the previous one.
	resumed, before map[messages.Ref]uint64

	looked time.Time // for ends; of the goroutine that follows
}

type wait struct {
	reason string
	since  time.Time
	number uint64 // of the event
}

// run follows the events until ctx ends.
func (p *parked) run(ctx context.Context, b *bus.Bus, log *slog.Logger) {
	for ctx.Err() == nil {
		p.reset()
		for f, err := range events.New(b).Waits(ctx) {
			if err == nil {
				p.take(&f)
				err = p.forgetEnded(ctx, b)
			}
			if err == nil {
				continue
			}
			if ctx.Err() == nil {
				log.WarnContext(ctx, "follow the waits of runs", "err", err)
			}
		}
		select {
		case <-time.After(parkedPause):
		case <-ctx.Done():
		}
	}
}

// forgetEnded looks whether some of the runs that wait have ended without continuing.
func (p *parked) forgetEnded(ctx context.Context, b *bus.Bus) error {
	if time.Since(p.looked) < endedEvery {
		return nil
	}
	p.looked = time.Now()
	for _, run := range p.some() {
		ended, err := events.New(b).HasEnded(ctx, run)
		if err != nil {
			return err
		}
		if ended {
			p.mu.Lock()
			p.resume(run, math.MaxUint64)
			p.mu.Unlock()
		}
	}
	return nil
}

// some are a few of the runs that wait, others each time.
func (p *parked) some() []messages.Ref {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]messages.Ref, 0, endedMost)
	for run := range p.runs {
		if len(out) == endedMost {
			break
		}
		out = append(out, run)
	}
	return out
}

func (p *parked) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs, p.whole = map[messages.Ref]wait{}, false
	p.resumed, p.before = map[messages.Ref]uint64{}, nil
}

func (p *parked) take(f *events.Fed) {
	if f.Position == 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.whole = true
		return
	}
	e, ok := f.Event()
	if !ok {
		return
	}
	var d messages.RunWaiting
	if strict.DecodePeer(e.Data, &d) != nil {
		return // it is counted as malformed elsewhere
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Name() == messages.EventRunResumed {
		p.resume(e.Ref(), e.Number())
	} else {
		p.park(e.Ref(), wait{p.reasons.show(d.Reason), e.Time, e.Number()})
	}
	if f.Pending == 0 {
		p.whole = true
	}
}

// park notes that a run waits, unless it has continued since or waits for something newer.
func (p *parked) park(run messages.Ref, w wait) {
	known, waits := p.runs[run]
	if w.number < max(known.number, p.resumed[run], p.before[run]) || !waits && len(p.runs) >= maxParked {
		return
	}
	p.runs[run] = w
}

// resume notes that a run continues, unless it has begun to wait again since.
func (p *parked) resume(run messages.Ref, number uint64) {
	if p.runs[run].number < number {
		delete(p.runs, run)
	}
	if len(p.resumed) >= maxResumed {
		p.resumed, p.before = map[messages.Ref]uint64{}, p.resumed
	}
	p.resumed[run] = max(number, p.resumed[run])
}

// byReason is how many wait for what, and since when the first of them does; nil before all that is kept was read.
func (p *parked) byReason() (n map[string]int, since map[string]time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.whole {
		return nil, nil
	}
	n, since = map[string]int{}, map[string]time.Time{}
	for _, r := range queue.ParkReasons() {
		if r.Person { // that no run waits for a person is worth showing
			n[r.Reason] = 0
		}
	}
	for _, w := range p.runs {
		n[w.reason]++
		if first, ok := since[w.reason]; !ok || w.since.Before(first) {
			since[w.reason] = w.since
		}
	}
	return n, since
}

func (p *parked) count() viewed {
	return p.viewed("runs_parked", "Waiting runs, by what they wait for: "+strings.Join(parkReasons(), ", ")+", or what a tool names.", func(show func(float64, string)) {
		n, _ := p.byReason()
		for reason, n := range n {
			show(float64(n), reason)
		}
	})
}

func (p *parked) oldest() viewed {
	return p.viewed("runs_parked_oldest_seconds", "Longest wait of the waiting runs, by what they wait for.", func(show func(float64, string)) {
		n, since := p.byReason()
		for reason := range n {
			show(age(since[reason]), reason)
		}
	})
}

func (*parked) viewed(name, help string, read func(show func(n float64, reason string))) viewed {
	labels := []string{"reason"}
	d := desc(name, help, labels...)
	return viewed{Described{Name: name, Type: typeGauge, Labels: labels, Help: help}, func(emit func(prometheus.Metric)) {
		read(func(n float64, reason string) {
			emit(prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, reason))
		})
	}}
}
