package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/database"
)

const (
	growthAsks  = 11                     // of each question; the median counts
	growthList  = 100                    // runs of a list
	growthLook  = 10 * time.Millisecond  // for the end of a sweep
	growthIndex = 200 * time.Millisecond // for the end of a rebuild
)

// grown is a fleet whose runs are retained: small ones, of one model call each, unless the plan says how many.
type grown struct {
	*bench

	hall *stage.Hall
	work *measure.Process
	runs int // retained

	emptyMemory, emptyLive, emptyDisk, emptyIndex uint64 // of NATS, its heap, its files and the index, before the first run
	last                                          messages.Ref
}

// growth measures what grows with the runs that are retained: it has more and more of them worked, stops at each size, and asks there what
// an operator asks. All runs are real ones, so what is stored is what workers store.
func (b *bench) growth(ctx context.Context) (err error) {
	h, err := b.env.OpenHall(ctx, b.dir, "")
	if err != nil {
		return err
	}
	g := &grown{bench: b, hall: h}
	defer func() {
		if g.work != nil {
			err = errors.Join(err, g.work.Stop())
		}
		err = errors.Join(err, h.Close())
	}()
	if err := g.empty(ctx); err != nil {
		return err
	}
	var sizes []growthSize
	for _, n := range b.plan.Retained {
		s, err := g.size(ctx, n)
		if err != nil {
			return fmt.Errorf("%d retained runs: %w", n, err)
		}
		sizes = append(sizes, s)
		b.report.Line(s)
	}
	old, err := g.settled(ctx)
	if err != nil {
		return err
	}
	b.report.growth(sizes, old)
	return nil
}

// empty reads what a fleet without runs has.
func (g *grown) empty(ctx context.Context) error {
	u, err := atRest(g.hall.Stage)
	if err != nil {
		return err
	}
	g.emptyMemory, g.emptyLive = u.Resident, u.LiveBytes
	g.emptyDisk, g.emptyIndex, err = g.files(ctx)
	return err
}

// growthSize is what a fleet needs with so many retained runs.
type growthSize struct {
	Name     string `json:"name"`
	Retained int    `json:"retained"`

	// While the runs since the last size were submitted and worked.
	RunsPerSecond float64 `json:"runsPerSecond"`
	WorkCPU       float64 `json:"workCpuMicrosPerRun"`
	DispatcherCPU float64 `json:"dispatcherCpuMicrosPerRun"`
	ServersCPU    float64 `json:"serversCpuMicrosPerRun"`

	// Memory: of NATS right after the work, after a garbage collection, after a restart; of the others after a garbage collection.
	NATSHotMB       float64 `json:"natsHotMb"`
	NATSMB          float64 `json:"natsMb"`
	NATSPerRun      float64 `json:"natsMemoryBytesPerRun"`
	NATSFreshMB     float64 `json:"natsRestartedMb"`
	NATSFreshPerRun float64 `json:"natsRestartedBytesPerRun"`
	NATSFreshLive   float64 `json:"natsRestartedHeapBytesPerRun"`
	natsRested
	DispatcherMB float64 `json:"dispatcherMb"`
	WorkMB       float64 `json:"workMb"`
	DiskPerRun   float64 `json:"natsDiskBytesPerRun"`
	IndexPerRun  float64 `json:"indexDiskBytesPerRun"`
	sweeps
	List          float64 `json:"listMs"`
	Search        float64 `json:"searchMs"` // of a text that no run has
	Stats         float64 `json:"statsMs"`
	Status        float64 `json:"statusMs"`
	Log           float64 `json:"logMs"`
	Failed        int     `json:"questionsFailed"` // of lists, searches and statistics: the index did not answer in time
	SearchCPU     float64 `json:"searchCpuMs"`     // of the dispatcher
	StatsCPU      float64 `json:"statsCpuMs"`
	Rebuild       float64 `json:"indexRebuildSeconds"`
	RebuildCPU    float64 `json:"indexRebuildCpuSeconds"` // of dispatcher and servers
	Rebuilt       float64 `json:"indexRebuildEventsPerSecond"`
	NATSStart     float64 `json:"natsRestartSeconds"`
	NATSStartCPU  float64 `json:"natsRestartCpuSeconds"`
	DispatchStart float64 `json:"dispatcherRestartSeconds"`
}

// natsRested is the memory of NATS once it has forgotten what it keeps of the newest messages alone: their ids, and what is in which block. It is
// measured of the last size, for it takes minutes.
type natsRested struct {
	IdleMB float64 `json:"natsSettledIdleMb,omitempty"` // as it is then
	MB     float64 `json:"natsSettledMb,omitempty"`     // after a garbage collection
	PerRun float64 `json:"natsSettledBytesPerRun,omitempty"`
	Live   float64 `json:"natsSettledHeapBytesPerRun,omitempty"` // of its heap
}

// size has runs worked until so many are retained, and measures.
func (g *grown) size(ctx context.Context, n int) (s growthSize, err error) {
	s = growthSize{Name: "growth", Retained: n}
	for _, part := range []func(context.Context, *growthSize) error{g.worked, g.memory, g.fresh, g.questions, g.rebuild, g.rested, g.restart} {
		if err := part(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// processes are those whose CPU time counts.
func (g *grown) processes() []*measure.Process {
	return []*measure.Process{g.work, g.hall.Dispatcher, g.hall.Servers}
}

// cpu is what each of the processes has used so far, in seconds.
func (g *grown) cpu() ([]float64, error) {
	var out []float64
	for _, p := range g.processes() {
		u, err := p.Usage()
		if err != nil {
			return nil, err
		}
		out = append(out, u.CPUSeconds)
	}
	return out, nil
}

// spent is how long something takes, and what each of the processes uses for it.
func (g *grown) spent(do func() error) (took float64, cpu []float64, err error) {
	before, err := g.cpu()
	if err != nil {
		return 0, nil, err
	}
	begun := time.Now()
	if err := do(); err != nil {
		return 0, nil, err
	}
	took = measure.Rounded(time.Since(begun).Seconds(), 3)
	after, err := g.cpu()
	for i := range after {
		after[i] -= before[i]
	}
	return took, after, err
}

// worked has the runs worked that are missing, each of one model call, until the index has them.
func (g *grown) worked(ctx context.Context, s *growthSize) (err error) {
	if g.work == nil {
		cfg := g.hall.Worker(g.plan.Slots)
		cfg.Steps = cmp.Or(g.plan.RetainedSteps, 1)
		if g.work, err = measure.Spawn(ctx, stage.RoleWorker, cfg, nil); err != nil {
			return err
		}
		if err := g.work.Start(); err != nil {
			return err
		}
	}
	f, err := stage.WatchFinishes(ctx, g.hall.Conn, s.Retained)
	if err != nil {
		return err
	}
	defer f.Stop()
	more := s.Retained - g.runs
	took, cpu, err := g.spent(func() error {
		if _, err := g.hall.Fill(ctx, more, g.plan.Submitters); err != nil {
			return err
		}
		if err := f.Await(ctx, g.work.Role); err != nil {
			return err
		}
		_, _, err := indexed(ctx, g.hall)
		return err
	})
	if err != nil {
		return err
	}
	g.runs = s.Retained
	per := func(seconds float64) float64 { return measure.Rounded(seconds*1e6/float64(more), 1) }
	s.RunsPerSecond = measure.Rounded(float64(more)/took, 0)
	s.WorkCPU, s.DispatcherCPU, s.ServersCPU = per(cpu[0]), per(cpu[1]), per(cpu[2])
	return nil
}

func (g *grown) memory(ctx context.Context, s *growthSize) error {
	u, err := g.hall.Servers.Usage()
	if err != nil {
		return err
	}
	s.NATSHotMB = measure.Megabytes(u.Resident)
	for i, p := range g.processes() {
		if err := p.Rest(); err != nil {
			return err
		}
		if u, err = p.Usage(); err != nil {
			return err
		}
		*[]*float64{&s.WorkMB, &s.DispatcherMB, &s.NATSMB}[i] = measure.Megabytes(u.Resident)
	}
	disk, index, err := g.files(ctx)
	s.NATSPerRun, s.DiskPerRun, s.IndexPerRun = g.per(u.Resident, g.emptyMemory), g.per(disk, g.emptyDisk), g.per(index, g.emptyIndex)
	return err
}

// per is how much of something there is for each retained run.
func (g *grown) per(now, empty uint64) float64 {
	return measure.Rounded((float64(now)-float64(empty))/float64(g.runs), 0)
}

// rested waits until NATS has settled, and measures its memory.
func (g *grown) rested(ctx context.Context, s *growthSize) error {
	if s.Retained != g.plan.Retained[len(g.plan.Retained)-1] {
		return nil
	}
	if err := rest(ctx, g.plan.RetainedSettle); err != nil {
		return err
	}
	u, err := g.hall.Servers.Usage()
	if err != nil {
		return err
	}
	s.IdleMB = measure.Megabytes(u.Resident)
	if u, err = atRest(g.hall.Stage); err != nil {
		return err
	}
	s.MB, s.PerRun, s.Live = measure.Megabytes(u.Resident), g.per(u.Resident, g.emptyMemory), g.per(u.LiveBytes, g.emptyLive)
	return g.hall.Servers.WriteHeap(g.plan.HeapProfile)
}

// files are the bytes that NATS has on disk, and those that the run index uses.
func (g *grown) files(ctx context.Context) (disk, index uint64, err error) {
	err = filepath.WalkDir(filepath.Join(g.hall.Dir, "servers"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		if err == nil {
			disk += uint64(info.Size())
		}
		return err
	})
	if err == nil {
		index, err = g.pages(ctx)
	}
	if err != nil {
		err = fmt.Errorf("count the bytes on disk: %w", err)
	}
	return disk, index, err
}

// pages are the bytes of the run index's pages in use. The sizes of its files say less: the write-ahead log keeps the room that it once
// needed, until a checkpoint.
func (g *grown) pages(ctx context.Context) (bytes uint64, err error) {
	db, err := database.Open(database.Config{Where: g.hall.Index, What: "the index"})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	const used = `SELECT (c.page_count - f.freelist_count) * s.page_size FROM pragma_page_count c, pragma_freelist_count f, pragma_page_size s`
	err = db.Reads.QueryRowContext(ctx, used).Scan(&bytes)
	return bytes, err
}

// rebuild has the run index made again.
func (g *grown) rebuild(ctx context.Context, s *growthSize) error {
	last, err := g.hall.LastEvent(ctx)
	if err != nil {
		return err
	}
	took, cpu, err := g.spent(func() error {
		if err := g.hall.Client.Index().Rebuild(ctx); err != nil {
			return err
		}
		return measure.Until(ctx, growthIndex, func() (bool, error) {
			st, err := g.hall.Client.Index().Status(ctx)
			if err != nil {
				return false, fmt.Errorf("ask the run index: %w", err)
			}
			return st.Behind == 0 && st.Runs == int64(g.runs), nil
		})
	})
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	s.Rebuild, s.RebuildCPU, s.Rebuilt = took, measure.Rounded(cpu[1]+cpu[2], 2), measure.Rounded(float64(last)/took, 0)
	return nil
}

// restart starts NATS and the dispatcher again. The worker is started by the next size.
func (g *grown) restart(ctx context.Context, s *growthSize) error {
	if err := g.work.Stop(); err != nil {
		return err
	}
	g.work = nil
	servers, dispatch, err := g.hall.Restart(ctx, g.env)
	if err != nil {
		return err
	}
	s.NATSStart, s.DispatchStart = measure.Rounded(servers.Seconds(), 3), measure.Rounded(dispatch.Seconds(), 3)
	u, err := g.hall.Servers.Usage()
	if err != nil {
		return err
	}
	s.NATSStartCPU = measure.Rounded(u.CPUSeconds, 2)
	if u, err = atRest(g.hall.Stage); err != nil {
		return err
	}
	s.NATSFreshMB, s.NATSFreshPerRun, s.NATSFreshLive = measure.Megabytes(u.Resident), g.per(u.Resident, g.emptyMemory), g.per(u.LiveBytes, g.emptyLive)
	return nil
}
