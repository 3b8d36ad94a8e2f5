package catalog

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// named are the commands about things of a tenant that runs bring into being by naming them.
type named[T any] struct {
	*conn.Caller

	one, many string
	list      func(ctx context.Context, c *dispatcher.Client, tenant string) (all []T, more bool, err error)
	get       func(ctx context.Context, c *dispatcher.Client, tenant, name string) (*T, error)
	remove    func(ctx context.Context, c *dispatcher.Client, tenant, name string) (was *T, err error)
	explain   func(err error, tenant, name string) error
	rows      func(w io.Writer, all []T, now time.Time) error
	details   func(w io.Writer, it *T, now time.Time) error
	removed   func(name string, was *T) string
}

// listed completes the command that lists them.
func (n named[T]) listed(cmd *cobra.Command) *cobra.Command {
	var s conn.Shared
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return n.With(cmd.Context(), func(client *dispatcher.Client) error {
			all, more, err := n.list(cmd.Context(), client, s.Tenant)
			switch {
			case err != nil:
				return render.Explain(err, messages.Ref{Tenant: s.Tenant})
			case len(all) == 0 && !s.Output.JSON:
				return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("no %s of tenant %s\n", n.many, s.Tenant))
			case more:
				if err := render.Write(cmd.ErrOrStderr(), "there are more than these\n"); err != nil {
					return err
				}
			}
			if s.Output.JSON {
				return conn.WriteLines(n.Caller, cmd, all)
			}
			return n.rows(cmd.OutOrStdout(), all, n.Options.Now())
		})
	}
	s.Register(cmd)
	return cmd
}

// shown completes the command that shows one.
func (n named[T]) shown(cmd *cobra.Command) *cobra.Command {
	return n.about(cmd, n.get, func(w io.Writer, _ string, it *T) error { return n.details(w, it, n.Options.Now()) })
}

// deleted completes the command that removes one.
func (n named[T]) deleted(cmd *cobra.Command) *cobra.Command {
	return n.about(cmd, n.remove, func(w io.Writer, name string, was *T) error {
		return render.Write(w, n.removed(render.Visible(name), was))
	})
}

func (n named[T]) about(
	cmd *cobra.Command, ask func(context.Context, *dispatcher.Client, string, string) (*T, error), write func(w io.Writer, name string, it *T) error,
) *cobra.Command {
	var s conn.Shared
	cmd.Args = n.oneName
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return n.With(cmd.Context(), func(client *dispatcher.Client) error {
			it, err := ask(cmd.Context(), client, s.Tenant, args[0])
			switch {
			case err != nil:
				return n.explain(err, s.Tenant, args[0])
			case s.Output.JSON:
				return n.WriteJSON(cmd, it)
			default:
				return write(cmd.OutOrStdout(), args[0], it)
			}
		})
	}
	s.Register(cmd)
	return cmd
}

func (n named[T]) oneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return render.Usagef("needs the name of one %s, got %d arguments", n.one, len(args))
	}
	if !strict.ValidToken(args[0]) {
		return render.Usagef("the name of a %s is 1 to 64 characters of A-Z a-z 0-9 _ -", n.one)
	}
	return nil
}
