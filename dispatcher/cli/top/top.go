package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

const (
	topLeastInterval = 200 * time.Millisecond
	topMostInterval  = time.Minute
	topAnswer        = 5 * time.Second // for all that a fleet is asked for at once
	topAskRuns       = 5 * time.Second // between two times: approvals and running runs are looked up for each tenant
	defaultHeight    = 24
	topApprovalsMost = 50  // of a tenant
	topRunsMost      = 200 // of a tenant, from the index
)

type topFlags struct {
	tenant   string
	interval time.Duration
	once     bool
	output   render.Format
}

// Command is `longshore top`.
func Command(c *conn.Caller) *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use: "top", SuggestFor: []string{"ui", "tui", "dashboard", "monitor"}, Short: "Watch the fleet: workers, lanes, runs, approvals, failures", Args: cobra.NoArgs,
		Long: "Show workers, lanes, runs, failures and rates, refreshed every second. Rates cover the events since\n" +
			"top started; running runs also come from the run index. Without a terminal, or with -o json, it prints one object per interval.\n\n" +
			"Keys: q quits, p freezes the display, Tab selects a section, arrows scroll it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.interval < topLeastInterval || f.interval > topMostInterval {
				return render.Usagef("--interval: must be %s to %s", topLeastInterval, topMostInterval)
			}
			if f.tenant != "" {
				if err := (messages.Ref{Tenant: f.tenant, Run: messages.NoRun}).Check(); err != nil {
					return render.Misuse(err)
				}
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error { return runTop(c, cmd, client, &f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", "", "only this tenant, and all workers")
	flags.DurationVar(&f.interval, "interval", time.Second, "how often to refresh")
	flags.BoolVar(&f.once, "once", false, "watch for one interval, print once and exit")
	flags.VarP(&f.output, "output", "o", "text or json")
	return cmd
}

// topping is `top` while it runs: a program of Bubble Tea, which draws it and reads keys. Its fields are of that program's loop,
// but those that never change.
type topping struct {
	client *dispatcher.Client
	flags  *topFlags
	model  *topModel
	now    func() time.Time
	poll   func(tenants []string, runs bool)             // asks the fleet; the answer comes as a *topPoll
	tell   func(now time.Time) (picture string, _ error) // shows the model, or returns what the screen shows of it

	asked         time.Time // for runs and approvals, last
	asks          bool      // a poll is on its way
	told          bool
	width, height int    // of the screen; 0: it is not known yet, or there is none
	picture       string // on the screen
	err           error  // that it ended with
}

// Messages to the loop, besides events and answers.
type (
	topTick  struct{}
	topEnded struct{ err error }
)

func runTop(c *conn.Caller, cmd *cobra.Command, client *dispatcher.Client, f *topFlags) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	t := &topping{client: client, flags: f, model: newTopModel(f.tenant, c.Options.Now()), now: c.Options.Now}
	program := tea.NewProgram(t, showTop(c, cmd, t)...)
	t.poll = func(tenants []string, runs bool) { all.Go(func() { program.Send(t.ask(ctx, tenants, runs)) }) }
	all.Go(func() { t.follow(ctx, program) })
	all.Go(func() { t.tick(ctx, program) })
	if _, err := program.Run(); err != nil {
		return fmt.Errorf("show the fleet: %w", err)
	}
	return t.err
}

// showTop sets how the model is shown: on the whole of a terminal, once as a text, or as JSON.
func showTop(c *conn.Caller, cmd *cobra.Command, t *topping) []tea.ProgramOption {
	options := []tea.ProgramOption{tea.WithoutSignalHandler()} // main has one, which ends the context
	switch {
	case t.flags.output.JSON || c.Options.Raw || !c.Options.Terminal && !t.flags.once:
		t.tell = func(now time.Time) (string, error) { return "", c.WriteJSON(cmd, t.model.shot(now)) }
	case t.flags.once:
		t.tell = func(now time.Time) (string, error) {
			const all = 1000 // lines: the terminal scrolls by itself
			lines := t.model.render(c.Options.Width(), all, c.Options.Color, now)
			return "", render.Write(cmd.OutOrStdout(), strings.Join(lines[:len(lines)-topFooter], "\n")+"\n")
		}
	default:
		t.tell = func(now time.Time) (string, error) {
			if t.width == 0 {
				return "", nil
			}
			return strings.Join(t.model.render(t.width, t.height, c.Options.Color, now), "\n"), nil
		}
		colors := colorprofile.Ascii
		if c.Options.Color {
			colors = colorprofile.ANSI
		}
		options = append(options, tea.WithOutput(cmd.OutOrStdout()), tea.WithColorProfile(colors), tea.WithFilter(sized(c.Options.Width)))
		if in, ok := cmd.InOrStdin().(*os.File); ok && render.IsTerminal(in) { // else the keys are those of the terminal that the process has
			options = append(options, tea.WithInput(in))
		}
		return options
	}
	return append(options, tea.WithoutRenderer(), tea.WithInput(nil))
}

// sized gives a size to a terminal that does not say its own, such as a serial line.
func sized(width func() int) func(tea.Model, tea.Msg) tea.Msg {
	return func(_ tea.Model, msg tea.Msg) tea.Msg {
		if size, ok := msg.(tea.WindowSizeMsg); ok {
			return tea.WindowSizeMsg{Width: cmp.Or(size.Width, width()), Height: cmp.Or(size.Height, defaultHeight)}
		}
		return msg
	}
}

// follow hands on the events until ctx ends.
func (t *topping) follow(ctx context.Context, program *tea.Program) {
	for e, err := range t.client.Follow(ctx, t.flags.tenant) {
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			program.Send(topEnded{err})
			return
		}
		program.Send(e)
	}
}

// tick looks again from time to time. It ends the program when ctx ends.
func (t *topping) tick(ctx context.Context, program *tea.Program) {
	tick := time.NewTicker(t.flags.interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			program.Send(topTick{})
		case <-ctx.Done():
			program.Send(topEnded{})
			return
		}
	}
}

// Init implements tea.Model.
func (t *topping) Init() tea.Cmd {
	t.askAgain()
	return nil
}

// Update implements tea.Model.
func (t *topping) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case messages.Event:
		t.model.event(&msg, t.now())
		return t, nil
	case *topPoll:
		t.asks = false
		t.model.answer(msg, t.now())
		if t.told || t.flags.once { // the first picture is there as soon as it can be
			return t, nil
		}
	case topTick:
		t.askAgain()
		if t.model.polled.IsZero() { // what is not known is not told
			return t, nil
		}
	case tea.WindowSizeMsg:
		t.width, t.height = msg.Width, msg.Height
		if !t.told {
			return t, nil
		}
	case tea.KeyPressMsg:
		if !t.model.key(msg.String(), t.now()) {
			return t, tea.Quit
		}
	case topEnded:
		t.err = explainTop(msg.err, t.flags.tenant)
		return t, tea.Quit
	default:
		return t, nil
	}
	t.picture, t.err = t.tell(t.now())
	if t.told = true; t.err != nil || t.flags.once {
		return t, tea.Quit
	}
	return t, nil
}

// View implements tea.Model. What it returns changes only when there is something to tell, however many events come.
func (t *topping) View() tea.View {
	v := tea.NewView(t.picture)
	v.AltScreen = true
	return v
}

func explainTop(err error, tenant string) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return render.Explain(err, messages.Ref{Tenant: tenant})
}

// askAgain asks the fleet, unless it is being asked.
func (t *topping) askAgain() {
	if t.asks {
		return
	}
	t.asks = true
	now := t.now()
	runs := now.Sub(t.asked) >= topAskRuns
	if runs {
		t.asked = now
	}
	t.poll(slices.Clone(t.model.tenants), runs)
}

func (t *topping) ask(ctx context.Context, tenants []string, runs bool) *topPoll {
	ctx, cancel := context.WithTimeout(ctx, topAnswer)
	defer cancel()
	p := &topPoll{errs: map[string]error{}, askedRuns: runs}
	p.workers, p.errs[topWorkers] = t.client.Fleet().Workers(ctx)
	p.lanes, p.errs[topLanes] = t.client.Fleet().Lanes(ctx, control.LanesRequest{Tenant: t.flags.tenant})
	if !runs {
		return p
	}
	if t.flags.tenant == "" && p.lanes != nil { // the first question must not wait for events to learn of tenants
		tenants = withLanes(tenants, p.lanes)
	}
	t.askRunning(ctx, tenants, p)
	for _, tenant := range tenants {
		list, err := t.client.Approvals().List(ctx, tenant, topApprovalsMost)
		if err != nil {
			p.errs[topApprovals] = err
			return p
		}
		p.approvals = append(p.approvals, list.Approvals...)
	}
	return p
}
