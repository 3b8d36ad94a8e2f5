package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// Connect opens the client when a command needs it; the function it returns closes what it opened.
type Connect func(ctx context.Context) (*dispatcher.Client, func(), error)

// commands is what all commands share.
type commands struct {
	connect Connect
	options Options
}

// Commands are all of the client. They write to the command's own outputs. Connect is
// called once what was asked for is known to be sound. At most one Options says how they show text, of which Out and
// Names do not count: Terminal and Color are about the error output, Raw is about the output. Without one there is no
// live progress, and the output is fit for a terminal.
func Commands(connect Connect, options ...Options) []*cobra.Command {
	c := &commands{connect: connect}
	if len(options) > 0 {
		c.options = options[0]
	}
	c.options.Out, c.options.Names = nil, nil
	c.options = c.options.withDefaults()
	return ofTenant(c.options.Tenant, []*cobra.Command{
		c.submit(), c.retry(), c.watch(), c.result(), c.cancel(), c.status(), c.list(), c.inbox(), c.approvals(), c.approve(), c.deny(), c.answer(),
		c.fork(), c.batch(), c.agentsCommand(), c.promptsCommand(), c.sessions(), c.steer(), c.feedback(), c.schedules(),
		c.dead(), c.keys(), c.quotasCommand(), c.lanes(), c.workersCommand(), c.drainCommand(), c.why(), c.pause(), c.resume(), c.top(), c.logs(),
		c.stats(), c.index(),
	})
}

// with runs do with a client.
func (c *commands) with(ctx context.Context, do func(*dispatcher.Client) error) error {
	client, done, err := c.connect(ctx)
	if err != nil {
		return oneLine(err)
	}
	if done != nil {
		defer done()
	}
	return do(client)
}

// shared are the flags that every command has.
type shared struct {
	tenant string
	output format
}

func (s *shared) register(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.tenant, "tenant", messages.DefaultTenant, "whose runs")
	flags.VarP(&s.output, "output", "o", "text or json")
}

// check returns a UsageError if the id is that of no run.
func (s *shared) check(id string) error {
	if err := (messages.Ref{Tenant: s.tenant, Run: id}).Check(); err != nil {
		return usage(err)
	}
	return nil
}
