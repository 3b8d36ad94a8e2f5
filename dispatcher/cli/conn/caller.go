package conn

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
)

// Connect opens the client when a command needs it; the function it returns closes what it opened.
type Connect func(ctx context.Context) (*dispatcher.Client, func(), error)

// Caller is what all commands share: how they reach a dispatcher, and how they show what it says.
type Caller struct {
	Connect Connect
	Options report.Options
}

// With runs do with a client.
func (c *Caller) With(ctx context.Context, do func(*dispatcher.Client) error) error {
	client, done, err := c.Connect(ctx)
	if err != nil {
		return render.OneLine(err)
	}
	if done != nil {
		defer done()
	}
	return do(client)
}

// Shared are the flags that every command has.
type Shared struct {
	Tenant string
	Output render.Format
}

// Register adds the flags to a command and those below it.
func (s *Shared) Register(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.Tenant, "tenant", messages.DefaultTenant, "tenant of the runs")
	flags.VarP(&s.Output, "output", "o", "text or json")
}

// Check returns a UsageError if the id is that of no run.
func (s *Shared) Check(id string) error {
	if err := (messages.Ref{Tenant: s.Tenant, Run: id}).Check(); err != nil {
		return render.Misuse(err)
	}
	return nil
}

// WriteJSON writes v on a line. Our own types are written as they are stored and sent; where a terminal may show
// them, characters that could steer it are written as escapes, which means the same.
func (c *Caller) WriteJSON(cmd *cobra.Command, v any) error {
	return render.WriteJSON(cmd, v, c.Options.Raw)
}

// WriteLines writes a list as JSON Lines: an item on each line, none when it is empty.
func WriteLines[T any](c *Caller, cmd *cobra.Command, items []T) error {
	for i := range items {
		if err := c.WriteJSON(cmd, &items[i]); err != nil {
			return err
		}
	}
	return nil
}

// ByFlag is who says to do it.
func (c *Caller) ByFlag(cmd *cobra.Command, by *string) {
	cmd.Flags().StringVar(by, "by", c.Options.User, "your name, which is stored with the change")
}
