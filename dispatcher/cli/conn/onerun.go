package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// How runs are named.
const (
	leastPrefix   = 4   // characters of an id: fewer are a slip
	mostCandidate = 10  // runs that an ambiguous prefix is answered with
	DefaultListed = 100 // runs, without --limit
	generatedID   = 26  // characters of an id that was not chosen by hand
)

// OfRun are the flags of a command about one run. It is named by its id, by the beginning of its id, or by --last.
type OfRun struct {
	Shared

	last    bool
	Changes bool // the command changes the run: an id that was chosen by hand must be whole
}

// Register adds the flags to a command.
func (o *OfRun) Register(cmd *cobra.Command) {
	o.Shared.Register(cmd)
	cmd.Flags().BoolVar(&o.last, "last", false, "the newest run of the tenant, instead of an id")
}

// Args wants the id of a run, unless --last names it, and least to most further arguments; what says all of them.
func (o *OfRun) Args(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		n := len(args)
		if !o.last {
			n--
		}
		switch {
		case n < least || n > most:
			if o.last {
				return render.Usagef("--last stands for the id of the run: needs %s without it, got %d arguments", what, len(args))
			}
			return render.Usagef("needs %s, got %d arguments", what, len(args))
		case o.last:
			return nil
		default:
			err := o.Check(args[0])
			return err
		}
	}
}

// One wants nothing but the id of a run.
func (o *OfRun) One() cobra.PositionalArgs { return o.Args(0, 0, "the id of one run") }

// Rest are the arguments that follow the id.
func (o *OfRun) Rest(args []string) []string {
	if o.last {
		return args
	}
	return args[1:]
}

// WithRun connects and does something with the run that the arguments name.
func (c *Caller) WithRun(cmd *cobra.Command, o *OfRun, args []string, do func(*dispatcher.Client, messages.Ref) error) error {
	run := messages.Ref{Tenant: o.Tenant, Run: messages.NoRun} // for the tenant
	if !o.last {
		run.Run = args[0]
		if err := o.Check(args[0]); err != nil {
			return err
		}
	} else if err := (messages.Ref{Tenant: o.Tenant, Run: "x"}).Check(); err != nil {
		return render.Misuse(err)
	}
	return c.With(cmd.Context(), func(client *dispatcher.Client) error {
		var err error
		if o.last {
			run, err = newest(cmd, client, o.Tenant)
		} else {
			run, err = meant(cmd, client, run, o.Changes)
		}
		if err != nil {
			return err
		}
		return do(client, run)
	})
}

// newest is the run of a tenant that was submitted last.
func newest(cmd *cobra.Command, client *dispatcher.Client, tenant string) (messages.Ref, error) {
	of := messages.Ref{Tenant: tenant, Run: messages.NoRun}
	list, err := client.Runs().List(cmd.Context(), dispatcher.RunFilter{Tenant: tenant, Limit: DefaultListed})
	if err != nil {
		return of, render.Explain(err, of)
	}
	if len(list.Runs) == 0 {
		return of, fmt.Errorf("no runs of tenant %s: submit a task with `%s`", tenant, render.Command("submit", messages.Ref{Tenant: tenant}))
	}
	last := slices.MaxFunc(list.Runs, func(a, b *control.RunSummary) int {
		return cmp.Or(SubmittedAt(a).Compare(SubmittedAt(b)), cmp.Compare(a.ID, b.ID))
	})
	of.Run = last.ID
	return of, render.Write(cmd.ErrOrStderr(), "run "+last.ID+"\n")
}

// meant is the run that an id, or the beginning of one, names. An unknown id stays as it is: the command says
// what that means to it.
func meant(cmd *cobra.Command, client *dispatcher.Client, run messages.Ref, changes bool) (messages.Ref, error) {
	if len(run.Run) < leastPrefix {
		return run, nil
	}
	if _, err := client.Status(cmd.Context(), run); !errors.Is(err, dispatcher.ErrNotFound) {
		return run, nil
	}
	found, err := startingWith(cmd.Context(), client, run)
	if err != nil {
		return run, nil //nolint:nilerr // that the run is not known is what counts
	}
	if changes { // what was chosen by hand may begin like another that is long gone
		found = slices.DeleteFunc(found, func(id string) bool { return len(id) != generatedID })
	}
	switch len(found) {
	case 0:
		return run, nil
	case 1:
		run.Run = found[0]
		return run, render.Write(cmd.ErrOrStderr(), "run "+run.Run+"\n")
	default:
		shown := found[:min(len(found), mostCandidate)]
		text := strings.Join(shown, ", ")
		if more := len(found) - len(shown); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return run, render.Usagef("several runs begin with %s: %s", run.Run, text)
	}
}

// startingWith are the ids that begin with that of run, newest first.
func startingWith(ctx context.Context, client *dispatcher.Client, run messages.Ref) ([]string, error) {
	list, err := client.Runs().List(ctx, dispatcher.RunFilter{Tenant: run.Tenant, Prefix: run.Run, Limit: control.MaxRunPage})
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list.Runs))
	for i, r := range list.Runs {
		ids[i] = r.ID
	}
	return ids, nil
}

// OneRun makes cmd a command about one run, which only reads it: named by its id, the beginning of its id, or --last. It
// gives it the flags --tenant, --last and -o, and returns whether that says JSON.
func OneRun(
	cmd *cobra.Command, connect Connect, do func(cmd *cobra.Command, client *dispatcher.Client, run messages.Ref) error,
) (asJSON *bool) {
	c, o := &Caller{Connect: connect}, &OfRun{}
	o.Register(cmd)
	cmd.Args = o.One()
	cmd.ValidArgsFunction = c.Completes(Runs)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.WithRun(cmd, o, args, func(client *dispatcher.Client, run messages.Ref) error { return do(cmd, client, run) })
	}
	return &o.Output.JSON
}

// SubmittedAt is when a run was submitted, or began as far as is known; zero: it is not.
func SubmittedAt(r *control.RunSummary) time.Time {
	if at := cmp.Or(r.Queued, r.Started); at != nil {
		return *at
	}
	return time.Time{}
}
