package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

const (
	lookers      = 8                      // runs that are looked at together
	lookAgain    = 500 * time.Millisecond // after a sweep was asked for
	askAgain     = 5 * time.Second        // for another one: a worker that sweeps at this moment passes it over
	maxStranded  = 1000                   // that are told
	defaultOlder = time.Minute            // a worker may be about to do what is missing
	defaultWait  = time.Minute            // for a sweep
)

type runsFlags struct {
	tenant      string
	output      render.Format
	older, wait time.Duration
	fix, all    bool
}

func runsCommand(cfg Config) *cobra.Command {
	var f runsFlags
	cmd := &cobra.Command{
		Use: "runs", Short: "Find stuck runs, which nothing will resume",
		Long: "Look at the logs of runs that have not ended, or ended a short while ago, and find those that nothing will resume:\n" +
			"their ticket, wake-up or timer is gone, they wait for a permit but not in its queue, or their end was not published.\n" +
			"It changes nothing. With --fix it asks the workers for the sweep that a dispatcher requests every LONGSHORE_SWEEP, and\n" +
			"waits until they are repaired.\n\n" +
			"It needs the NATS user of a dispatcher, and exits with 1 if there are such runs.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd, &cfg)
		},
	}
	set := cmd.Flags()
	set.StringVar(&f.tenant, "tenant", "", "only runs of this tenant")
	f.output.Register(cmd)
	set.DurationVar(&f.older, "older", defaultOlder, "leave out runs whose log grew more recently")
	set.BoolVar(&f.all, "all", false, "look at the log of every run, whether or not it is known to have ended")
	set.BoolVar(&f.fix, "fix", false, "have the workers repair them")
	set.DurationVar(&f.wait, "wait", defaultWait, "how long to wait for that")
	return cmd
}

func (f *runsFlags) check() error {
	if f.tenant != "" {
		if err := (messages.Ref{Tenant: f.tenant, Run: messages.NoRun}).Check(); err != nil {
			return render.Usagef("%w", err)
		}
	}
	switch {
	case f.older < 0 || f.wait < 0:
		return render.Usagef("--older and --wait must not be below 0")
	default:
		return nil
	}
}

// Stranded is a run that nothing will happen to.
type Stranded struct {
	Tenant   string        `json:"tenant"`
	ID       string        `json:"id"`
	Since    time.Time     `json:"since"` // of its last entry
	Phase    record.Phase  `json:"phase"`
	Last     []record.Kind `json:"last"` // the records of that
	Why      string        `json:"why"`
	Repaired bool          `json:"mended,omitempty"` // something happens to it now
}

// strandedRuns is what `doctor runs` found.
type strandedRuns struct {
	Looked int         `json:"looked"` // runs that were looked at
	Runs   []*Stranded `json:"runs"`   // the longest first
	More   int         `json:"more,omitempty"`
}

func (f *runsFlags) run(cmd *cobra.Command, cfg *Config) error {
	ctx := cmd.Context()
	stored, err := openLogs(ctx, cfg.Environ())
	if err != nil {
		return err
	}
	defer stored.close()
	list, err := f.find(ctx, stored)
	if err != nil {
		return err
	}
	if f.fix && len(list.Runs) > 0 {
		if err := stored.repair(ctx, list, f.wait); err != nil {
			return err
		}
	}
	if f.output.JSON {
		err = render.WriteJSON(cmd, list, cfg.Raw)
	} else {
		err = list.write(cmd.OutOrStdout(), f.fix)
	}
	if err != nil {
		return err
	}
	if left := list.left(); left > 0 {
		return fmt.Errorf("%w: %d", ErrStranded, left)
	}
	return nil
}

// storedRuns is what a sweep looks at.
type storedRuns struct {
	queue      *taskqueue.Queue
	sweeps     *taskqueue.Sweeps
	logs       *runlogs.Store
	controller *runlog.Controller
	close      func()
}

func openLogs(ctx context.Context, environ []string) (*storedRuns, error) {
	var client settings.Client
	if err := settings.Load(&client, environ); err != nil {
		return nil, err
	}
	if client.API != "" {
		return nil, settings.Errorf("LONGSHORE_URL is set: this reads logs where they are stored, so unset it and set NATS_URL")
	}
	var own settings.Dispatcher
	if err := settings.Read(&own, environ); err != nil {
		return nil, err
	}
	keys, err := bus.ParseControlKeys(own.ControlKeys)
	if err != nil {
		return nil, settings.Errorf("LONGSHORE_CONTROL_KEYS: %v", err)
	}
	log := slog.New(slog.DiscardHandler)
	nc, err := fleet.Connect(ctx, client.NATS, fleet.Client, log)
	if err != nil {
		return nil, err
	}
	b, err := bus.Open(ctx, nc, bus.Config{Log: log, Keys: keys})
	if err != nil {
		nc.Close()
		return nil, err
	}
	ring, err := fleet.Keys(b, &own.Encryption)
	if err != nil {
		nc.Close()
		return nil, err
	}
	s := &storedRuns{queue: taskqueue.New(b), sweeps: taskqueue.NewSweeps(b), logs: runlogs.New(b, runlogs.Config{Sealer: ring}), close: nc.Close}
	s.controller = &runlog.Controller{Log: s.logs, Queue: s.queue, Events: s.logs, Sessions: sessions.New(b, s.logs), Semaphores: semaphores.New(b), Workspaces: files.New(b), Now: time.Now}
	return s, nil
}

// find looks at the runs that are not known to have ended, or at every run that has a log.
func (f *runsFlags) find(ctx context.Context, stored *storedRuns) (*strandedRuns, error) {
	list := &strandedRuns{Runs: []*Stranded{}}
	var mu sync.Mutex // guards list
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lookers)
	look := func(run messages.Ref) {
		group.Go(func() error {
			why, last, err := stored.controller.Stranded(ctx, run, stored.queue.Awaited)
			if err != nil {
				return fmt.Errorf("look at run %s: %w", run, err)
			}
			mu.Lock()
			defer mu.Unlock()
			list.Looked++
			switch {
			case why == "" || stored.controller.Now().Sub(last.Head.Time) < f.older:
			case len(list.Runs) == maxStranded:
				list.More++
			default:
				list.Runs = append(list.Runs, &Stranded{
					Tenant: run.Tenant, ID: run.Run, Since: last.Head.Time, Phase: last.Head.Phase, Last: last.Head.Kinds, Why: why,
				})
			}
			return nil
		})
	}
	for run, err := range f.runs(ctx, stored) {
		if err != nil {
			return nil, errors.Join(err, group.Wait())
		}
		if f.tenant == "" || run.Tenant == f.tenant {
			look(run)
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Runs, func(x, y *Stranded) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Tenant, y.Tenant), cmp.Compare(x.ID, y.ID))
	})
	return list, nil
}

// runs yields the runs to look at, each once.
func (f *runsFlags) runs(ctx context.Context, stored *storedRuns) iter.Seq2[messages.Ref, error] {
	if f.all {
		return stored.logs.Runs(ctx)
	}
	return func(yield func(messages.Ref, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		wanted := true
		open := runlogs.OpenRuns{Logs: stored.logs, Look: func(_ context.Context, run messages.Ref) (runlog.Swept, error) {
			if wanted = wanted && yield(run, nil); !wanted {
				cancel()
			}
			return runlog.Swept{Ended: true, Over: true}, nil // it is looked at once
		}}
		if _, err := open.Each(ctx); err != nil && wanted {
			yield(messages.Ref{}, fmt.Errorf("list the open runs: %w (--all looks at every run)", err))
		}
	}
}

// repair asks for a sweep and waits until every run is being worked on again, or until the wait is over.
func (s *storedRuns) repair(ctx context.Context, list *strandedRuns, wait time.Duration) error {
	var asked time.Time
	over := time.NewTimer(wait)
	defer over.Stop()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		if time.Since(asked) >= askAgain {
			if err := s.sweeps.AskSweep(ctx); err != nil {
				return fmt.Errorf("ask for a sweep: %w", err)
			}
			asked = time.Now()
		}
		for _, run := range list.Runs {
			if run.Repaired {
				continue
			}
			why, _, err := s.controller.Stranded(ctx, messages.Ref{Tenant: run.Tenant, Run: run.ID}, s.queue.Awaited)
			if err != nil {
				return fmt.Errorf("look at run %s: %w", run.ID, err)
			}
			run.Repaired = why == ""
		}
		if list.left() == 0 {
			return nil
		}
		select {
		case <-again.C:
		case <-over.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// left is how many are as they were.
func (l *strandedRuns) left() int {
	left := l.More
	for _, s := range l.Runs {
		if !s.Repaired {
			left++
		}
	}
	return left
}

func (l *strandedRuns) write(w io.Writer, fix bool) error {
	if len(l.Runs) == 0 {
		_, err := fmt.Fprintf(w, "checked %s: none is stuck\n", render.Count(int64(l.Looked), "run"))
		return err
	}
	table := render.NewTable(w)
	table.Row("TENANT", "RUN", "SINCE", "LAST", "WHY")
	for _, s := range l.Runs {
		why, last := s.Why, "-"
		if s.Repaired {
			why = "repaired: " + why
		}
		if n := len(s.Last); n > 0 {
			last = string(s.Last[n-1])
		}
		table.Row(s.Tenant, s.ID, render.At(s.Since, time.Now()), last, why)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var say string
	switch left := l.left(); {
	case !fix:
		say = "`longshore doctor runs --fix` has the workers repair them\n"
	case left > 0:
		say = fmt.Sprintf("%d are as they were: a sweep was asked for; is a worker running (`longshore workers`)?\n", left)
	default:
		return nil
	}
	if l.More > 0 {
		say = fmt.Sprintf("and %d more; ", l.More) + say
	}
	_, err := io.WriteString(w, say)
	return err
}
