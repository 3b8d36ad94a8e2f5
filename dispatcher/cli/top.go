package cli

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

const (
	topLeastInterval = 200 * time.Millisecond
	topMostInterval  = time.Minute
	topAnswer        = 5 * time.Second // for all that a fleet is asked for at once
	topAskRuns       = 5 * time.Second // between two times: approvals and running runs are looked up for each tenant
	topApprovalsMost = 50              // of a tenant
	topRunsMost      = 200             // of a tenant, from the index
	topLook          = 100 * time.Millisecond
)

type topFlags struct {
	tenant   string
	interval time.Duration
	once     bool
	output   format
}

func (c *commands) top() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use: "top", SuggestFor: []string{"ui", "tui", "dashboard", "monitor"}, Short: "Watch the fleet: workers, lanes, runs, approvals, failures", Args: cobra.NoArgs,
		Long: "Show who works, what waits and what failed, and how fast it goes, anew every second. Rates are of events that came since\n" +
			"it began; running runs come from the run index too. Without a terminal, or with -o json, it prints one object each time.\n\n" +
			"Keys: q ends, p holds the picture, Tab chooses a section, arrows scroll it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.interval < topLeastInterval || f.interval > topMostInterval {
				return usagef("--interval: must be %s to %s", topLeastInterval, topMostInterval)
			}
			if f.tenant != "" {
				if err := (messages.Ref{Tenant: f.tenant, Run: messages.NoRun}).Check(); err != nil {
					return usage(err)
				}
			}
			return c.with(cmd.Context(), func(client *dispatcher.Client) error { return c.runTop(cmd, client, &f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", "", "only what is of this tenant, and all workers")
	flags.DurationVar(&f.interval, "interval", time.Second, "how often it looks")
	flags.BoolVar(&f.once, "once", false, "look for one interval, print once and end")
	flags.VarP(&f.output, "output", "o", "text or json")
	return cmd
}

// topping is `top` while it runs.
type topping struct {
	client *dispatcher.Client
	flags  *topFlags
	model  *topModel
	now    func() time.Time

	events chan messages.Event
	failed chan error
	polls  chan *topPoll
	asked  time.Time // for runs and approvals, last
	asks   bool      // a poll is on its way
}

func (c *commands) runTop(cmd *cobra.Command, client *dispatcher.Client, f *topFlags) error {
	tell := func(m *topModel, now time.Time) error { return c.writeJSON(cmd, m.shot(now)) }
	var screen *topScreen
	switch {
	case f.output.json || c.options.Raw || !c.options.Terminal && !f.once:
	case f.once:
		tell = func(m *topModel, now time.Time) error {
			const all = 1000 // lines: it scrolls by itself
			lines := m.render(c.options.Width(), all, c.options.Color, now)
			return write(cmd.OutOrStdout(), strings.Join(lines[:len(lines)-topFooter], "\n")+"\n")
		}
	default:
		var err error
		if screen, err = openTopScreen(cmd.InOrStdin(), cmd.OutOrStdout(), c.options); err != nil {
			return err
		}
		defer screen.close()
		tell = screen.draw
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	t := &topping{
		client: client, flags: f, model: newTopModel(f.tenant, c.options.Now()), now: c.options.Now,
		events: make(chan messages.Event), failed: make(chan error, 1), polls: make(chan *topPoll, 1),
	}
	all.Go(func() { t.follow(ctx) })
	return t.run(ctx, &all, screen, tell)
}

// follow hands on the events until ctx ends.
func (t *topping) follow(ctx context.Context) {
	for e, err := range t.client.Follow(ctx, t.flags.tenant) {
		if err != nil {
			t.failed <- err
			return
		}
		select {
		case t.events <- e:
		case <-ctx.Done():
			return
		}
	}
}

// run gathers and tells until somebody has seen enough.
func (t *topping) run(ctx context.Context, all *sync.WaitGroup, screen *topScreen, tell func(*topModel, time.Time) error) error {
	tick, look := time.NewTicker(t.flags.interval), time.NewTicker(topLook)
	defer tick.Stop()
	defer look.Stop()
	t.poll(ctx, all)
	told := false
	for {
		due := false
		select {
		case <-ctx.Done():
			return nil
		case err := <-t.failed:
			if ctx.Err() != nil || errors.Is(err, context.Canceled) {
				return nil
			}
			return explain(err, messages.Ref{Tenant: t.flags.tenant})
		case e := <-t.events:
			t.model.event(&e, t.now())
		case p := <-t.polls:
			t.asks = false
			t.model.answer(p, t.now())
			due = !told && !t.flags.once // the first picture is there as soon as it can be
		case <-tick.C:
			t.poll(ctx, all)
			due = !t.model.polled.IsZero() // what is not known is not told
		case key := <-screen.keys():
			if !t.model.key(key, t.now()) {
				return nil
			}
			due = true
		case <-look.C:
			due = screen.resized()
		}
		if !due {
			continue
		}
		if err := tell(t.model, t.now()); err != nil {
			return err
		}
		if told = true; t.flags.once {
			return nil
		}
	}
}

// poll asks the fleet, unless it is being asked.
func (t *topping) poll(ctx context.Context, all *sync.WaitGroup) {
	if t.asks {
		return
	}
	t.asks = true
	now := t.now()
	runs := now.Sub(t.asked) >= topAskRuns
	if runs {
		t.asked = now
	}
	tenants := append([]string(nil), t.model.tenants...)
	all.Go(func() { t.polls <- t.ask(ctx, tenants, runs) }) // there is room: one is on its way at a time
}

func (t *topping) ask(ctx context.Context, tenants []string, runs bool) *topPoll {
	ctx, cancel := context.WithTimeout(ctx, topAnswer)
	defer cancel()
	p := &topPoll{errs: map[string]error{}, askedRuns: runs}
	p.workers, p.errs[topWorkers] = t.client.Workers(ctx)
	p.lanes, p.errs[topLanes] = t.client.Lanes(ctx, messages.LanesRequest{Tenant: t.flags.tenant})
	if !runs {
		return p
	}
	if t.flags.tenant == "" && p.lanes != nil { // the first question must not wait for events to learn of tenants
		tenants = withLanes(tenants, p.lanes)
	}
	t.askRunning(ctx, tenants, p)
	for _, tenant := range tenants {
		list, err := t.client.Approvals(ctx, tenant, topApprovalsMost)
		if err != nil {
			p.errs[topApprovals] = err
			return p
		}
		p.approvals = append(p.approvals, list.Approvals...)
	}
	return p
}
