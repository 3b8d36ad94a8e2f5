//go:build unix

package fleet_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// storm is workers that are killed one after the other under runs.
type storm struct {
	runs          int
	workers       int           // at any moment
	kills         int           // in all
	oldest        bool          // it is always the oldest worker that is killed, else any
	every         time.Duration // between two of them
	hold          time.Duration // the shortest that a model call lasts; the longest lasts three times as long
	longest       time.Duration // that a run may be without an owner
	longestByHalf time.Duration // that half of them may be
}

// gap is the time from the death of a run's owner to the next claim.
type gap struct {
	run     messages.Ref
	took    time.Duration
	suspect bool // no progress between the last owner's claim and its death
}

// TestStorm kills one worker after the other, with all its runs in model calls, and starts another in its place, as a
// supervisor of processes would. A run that dies with so many others, again and again, is never held back for long, and
// is never taken for the cause.
func TestStorm(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]storm{
		"any of four": {runs: 60, workers: 4, kills: 8},
		// Each run dies with every other worker, with or without progress.
		"two by turns": {runs: 40, workers: 2, kills: 10, oldest: true},
	} {
		s.every, s.hold = 1200*time.Millisecond, time.Second
		s.longest, s.longestByHalf = shortAckWait+6*time.Second, takeover
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.rage(t)
		})
	}
}

func (s storm) rage(t *testing.T) {
	t.Helper()
	w := open(t, shortAckWait, func(*modelCall) reply { return reply{Hold: true} })
	over := make(chan struct{})
	go s.answer(w.model, over)
	started, slowest := 0, time.Duration(0)
	start := func() *process {
		started++
		begun := time.Now()
		p := w.worker("worker-" + strconv.Itoa(started))
		slowest = max(slowest, time.Since(begun))
		return p
	}
	var fleet []*process
	for range s.workers {
		fleet = append(fleet, start())
	}
	var watched []*watching
	for i := range s.runs {
		watched = append(watched, w.watch(w.submit(strconv.Itoa(i), func(task *messages.Task) { task.Agent = "endless" })))
	}
	died := map[string]time.Time{}
	dice := rand.New(rand.NewPCG(1, uint64(s.kills)))
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for range s.kills {
		<-tick.C
		i := s.victim(dice)
		died[fleet[i].name] = time.Now()
		fleet[i].kill()
		fleet = append(slices.Delete(fleet, i, i+1), start())
	}
	close(over)
	for _, g := range watched {
		if r := g.end(); r.Status != messages.StatusCompleted {
			t.Errorf("%s: %s, %v", g.run, r.Status, r.Error)
		}
	}
	// A machine on which a worker takes long to start is slow with all else.
	longest, longestByHalf := s.longest+2*slowest, s.longestByHalf+slowest
	var all, suspects []time.Duration
	for _, g := range watched {
		for _, gap := range w.gaps(g.run, died) {
			if all = append(all, gap.took); gap.suspect {
				suspects = append(suspects, gap.took)
			}
			if gap.took > longest {
				t.Errorf("%s had no owner for %v, want at most %v", g.run, gap.took, longest)
				w.tell(g.run)
			}
		}
	}
	t.Logf("%d kills: %s; of those without progress: %s", s.kills, spread(all), spread(suspects))
	if len(all) < s.runs {
		t.Errorf("owners of runs died %d times: the storm is none", len(all))
	}
	if half := quantile(all, 2); half > longestByHalf {
		t.Errorf("half of the runs had no owner for %v, want at most %v", half, longestByHalf)
	}
}

// victim is which of the workers is killed, by age.
func (s storm) victim(dice *rand.Rand) int {
	if s.oldest {
		return 0
	}
	return dice.IntN(s.workers)
}

// answer answers the calls that the model server holds, each after its time, until the server is closed. Runs continue, step by
// step, until the storm is over: each kill finds some, however fast or slow the machine is.
func (s storm) answer(m *modelServer, over <-chan struct{}) {
	for {
		select {
		case c := <-m.held:
			time.AfterFunc(s.lasts(c), func() {
				select {
				case <-over:
					c.answer <- turn(c, c.Turn+1)
				default:
					c.answer <- turn(c, c.Turn+2)
				}
			})
		case <-m.closed:
			return
		}
	}
}

// lasts is how long a call does: always the same for the same turn of the same run.
func (s storm) lasts(c *modelCall) time.Duration {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, c.Task, " ", c.Turn)
	return s.hold + time.Duration(h.Sum32()%200)*s.hold/100
}

// gaps are those of a run's owners. It fails when a run was taken from a worker that lived.
func (w *town) gaps(run messages.Ref, died map[string]time.Time) (out []gap) {
	w.t.Helper()
	owner, progress := "", false
	for _, e := range w.log(run) {
		for _, r := range e.Records {
			c, ok := r.(*record.Claimed)
			if !ok {
				continue
			}
			if owner != "" {
				at, dead := died[owner]
				if !dead || e.Head.Time.Before(at) {
					w.t.Errorf("%s was taken from %s, which lives", run, owner)
				}
				out = append(out, gap{run, e.Head.Time.Sub(at), !progress})
			}
			owner, progress = c.Worker, false
		}
		progress = progress || e.Head.Attempt == 0
	}
	return out
}

func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, p50 %v, p99 %v, max %v", len(all), quantile(all, 2).Round(time.Millisecond), quantile(all, 100).Round(time.Millisecond), slices.Max(all).Round(time.Millisecond))
}

// quantile is what all but one in n stay below.
func quantile(all []time.Duration, n int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)-1-(len(sorted)-1)/n]
}
