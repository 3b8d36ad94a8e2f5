package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
)

// indexLook is how often the run index, or the audit, is asked how far it is.
const indexLook = 50 * time.Millisecond

// dispatcherName is the name of the dispatcher's connection.
const dispatcherName = "longshore dispatcher"

// wholeCost is what runs cost in all processes, until the index, the metrics and the audit have every event.
type wholeCost struct {
	cost

	dispatcher consumed // with the run index and the metrics
	auditor    consumed
	bare       measure.Usage // of a dispatcher without run index, for the same runs
	all        measure.Usage // of all processes but the driver
	behind     uint64        // events that the index had not applied when the last run ended
	catchUp    time.Duration // of the index
	audited    time.Duration // from then until the audit had all, too
}

// consumed is what a process that follows events has used, and its connection.
type consumed struct {
	usage   measure.Usage
	traffic measure.Traffic
}

// whole measures what a run costs the whole fleet: a worker, the servers, a dispatcher that counts events and keeps the run index, and an
// auditor, as an operator runs them. What the index costs is the difference to a dispatcher without one. Submits are not in it.
func (b *bench) whole(ctx context.Context) error {
	bare, err := b.wholeWithoutIndex(ctx)
	if err != nil {
		return err
	}
	c, err := b.wholeFleet(ctx)
	if err != nil {
		return err
	}
	c.bare = bare
	b.report.whole(b.plan, c)
	return nil
}

func (b *bench) wholeWithoutIndex(ctx context.Context) (u measure.Usage, err error) {
	h, err := b.env.OpenHallWithoutIndex(ctx, b.dir)
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return u, b.wholeWork(ctx, h, "", func(work *measure.Process) error {
		from, err := h.Dispatcher.Usage()
		if err != nil {
			return err
		}
		if _, err := b.watch(ctx, h.Stage, work, stage.WorkerName); err != nil {
			return err
		}
		to, err := h.Dispatcher.Usage()
		u = to.Minus(from)
		return err
	})
}

func (b *bench) wholeFleet(ctx context.Context) (c wholeCost, err error) {
	profile := measure.Suffixed(b.profile, ".whole")
	h, err := b.env.OpenHall(ctx, b.dir, profile)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	var ready stage.AuditReady
	auditor, err := measure.Spawn(ctx, stage.RoleAudit, stage.AuditConfig{
		NATSURL: h.Ready.NATSURL, Dir: filepath.Join(h.Dir, "audit"), Profile: measure.Suffixed(profile, ".audit"),
	}, &ready)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, auditor.Stop()) }()
	return c, b.wholeWork(ctx, h, profile, func(work *measure.Process) (err error) {
		processes := []*measure.Process{work, h.Servers, h.Dispatcher, auditor}
		from, err := readAll(ctx, h, processes)
		if err != nil {
			return err
		}
		if c.cost, err = b.watch(ctx, h.Stage, work, stage.WorkerName); err != nil {
			return err
		}
		if c.behind, c.catchUp, err = indexed(ctx, h); err != nil {
			return err
		}
		if c.audited, err = audited(ctx, h, ready.Addr); err != nil {
			return err
		}
		to, err := readAll(ctx, h, processes)
		if err != nil {
			return err
		}
		for i := range processes {
			used := to.usages[i].Minus(from.usages[i])
			c.all.CPUSeconds += used.CPUSeconds
			c.all.PeakBytes += used.PeakBytes
		}
		c.work, c.servers = to.usages[0].Minus(from.usages[0]), to.usages[1].Minus(from.usages[1])
		c.all.CPUSeconds += c.servers.RedisSeconds
		c.traffic = to.worker.Minus(from.worker)
		c.dispatcher = consumed{to.usages[2].Minus(from.usages[2]), to.dispatcher.Minus(from.dispatcher)}
		c.auditor = consumed{to.usages[3].Minus(from.usages[3]), to.auditor.Minus(from.auditor)}
		return nil
	})
}

// wholeWork fills the queue and hands a worker to do, which starts it.
func (b *bench) wholeWork(ctx context.Context, h *stage.Hall, profile string, do func(*measure.Process) error) (err error) {
	if _, err := h.Fill(ctx, b.plan.Warmup+b.plan.Runs, b.plan.Submitters); err != nil {
		return err
	}
	setup := h.Worker(b.plan.Slots)
	setup.Profile = profile
	work, err := measure.Spawn(ctx, stage.RoleWorker, setup, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Stop()) }()
	return do(work)
}

// wholeReading is what all processes and their connections have used at a moment.
type wholeReading struct {
	usages                      []measure.Usage
	worker, dispatcher, auditor measure.Traffic
}

func readAll(ctx context.Context, h *stage.Hall, processes []*measure.Process) (r wholeReading, err error) {
	r.usages = make([]measure.Usage, len(processes))
	for i, p := range processes {
		if r.usages[i], err = p.Usage(); err != nil {
			return r, err
		}
	}
	for name, to := range map[string]*measure.Traffic{
		stage.WorkerName: &r.worker, dispatcherName: &r.dispatcher, stage.AuditName: &r.auditor,
	} {
		if *to, err = measure.TrafficOf(ctx, h.Conn, name); err != nil {
			return r, err
		}
	}
	return r, nil
}

// indexed waits until the run index has every event. It returns how many it lacked, and how long that took.
func indexed(ctx context.Context, h *stage.Hall) (behind uint64, took time.Duration, err error) {
	began := time.Now()
	err = measure.Until(ctx, indexLook, func() (bool, error) {
		s, err := h.Client.Index().Status(ctx)
		if err != nil {
			return false, fmt.Errorf("ask the run index: %w", err)
		}
		behind = max(behind, s.Behind)
		return s.Behind == 0, nil
	})
	return behind, time.Since(began), err
}

// audited waits until the audit has every event, and has compared every run. It returns how long that took.
func audited(ctx context.Context, h *stage.Hall, addr string) (time.Duration, error) {
	began := time.Now()
	last, err := h.LastEvent(ctx)
	if err != nil {
		return 0, err
	}
	err = measure.Until(ctx, indexLook, func() (bool, error) {
		m, err := measure.Gauges(ctx, "http://"+addr+"/metrics", "longshore_audit_position", "longshore_audit_uncompared_runs")
		return err == nil && m[0] >= float64(last) && m[1] == 0, err
	})
	return time.Since(began), err
}

func (r *report) whole(p plan, c wholeCost) {
	per := func(v float64) float64 { return measure.Rounded(v/float64(c.runs), 1) }
	line := struct {
		Name string `json:"name"`
		costs
		DispatcherCPU float64 `json:"dispatcherCpuMicrosPerRun"`
		IndexCPU      float64 `json:"indexCpuMicrosPerRun"` // of the dispatcher's: what it uses less without an index
		AuditCPU      float64 `json:"auditCpuMicrosPerRun"`
		AllCPU        float64 `json:"allCpuMicrosPerRun"`
		DispatcherIn  float64 `json:"dispatcherMessagesToServerPerRun"`
		DispatcherOut float64 `json:"dispatcherMessagesFromServerPerRun"`
		AuditIn       float64 `json:"auditMessagesToServerPerRun"`
		AuditOut      float64 `json:"auditMessagesFromServerPerRun"`
		AllMessages   float64 `json:"allMessagesPerRun"` // to and from the server
		BytesToIt     float64 `json:"dispatcherBytesFromServerPerRun"`
		BytesToAudit  float64 `json:"auditBytesFromServerPerRun"`
		AllBytes      float64 `json:"allBytesPerRun"`
		ServersMB     float64 `json:"serversPeakResidentMb"`
		DispatcherMB  float64 `json:"dispatcherPeakResidentMb"`
		AuditMB       float64 `json:"auditPeakResidentMb"`
		AllMB         float64 `json:"allPeakResidentMb"`
		Behind        uint64  `json:"indexEventsBehindAtEnd"`
		CatchUp       float64 `json:"indexCaughtUpSeconds"`
		Audited       float64 `json:"auditCaughtUpSeconds"`
	}{
		Name: "whole", costs: newCosts(p, c.cost),
		DispatcherCPU: per(c.dispatcher.usage.CPUSeconds * 1e6), AuditCPU: per(c.auditor.usage.CPUSeconds * 1e6), AllCPU: per(c.all.CPUSeconds * 1e6),
		IndexCPU:     per((c.dispatcher.usage.CPUSeconds - c.bare.CPUSeconds) * 1e6),
		DispatcherIn: per(float64(c.dispatcher.traffic.InMsgs)), DispatcherOut: per(float64(c.dispatcher.traffic.OutMsgs)),
		AuditIn: per(float64(c.auditor.traffic.InMsgs)), AuditOut: per(float64(c.auditor.traffic.OutMsgs)),
		BytesToIt: per(float64(c.dispatcher.traffic.OutBytes)), BytesToAudit: per(float64(c.auditor.traffic.OutBytes)),
		ServersMB: measure.Megabytes(c.servers.PeakBytes), DispatcherMB: measure.Megabytes(c.dispatcher.usage.PeakBytes),
		AuditMB: measure.Megabytes(c.auditor.usage.PeakBytes), AllMB: measure.Megabytes(c.all.PeakBytes),
		Behind: c.behind, CatchUp: measure.Rounded(c.catchUp.Seconds(), 2), Audited: measure.Rounded(c.audited.Seconds(), 2),
	}
	sum := c.traffic.Plus(c.dispatcher.traffic).Plus(c.auditor.traffic)
	line.AllMessages, line.AllBytes = per(float64(sum.InMsgs+sum.OutMsgs)), per(float64(sum.InBytes+sum.OutBytes))
	r.Line(line)
}
