package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
)

var errNoFleet = errors.New("the fleet is the command's own, and not started")

// completeOwnFleet lets shells offer names for the flags of commands that start a fleet of their own unless the environment names
// one. Of their own fleet they know the agents in the folder of --agents.
func (p *Process) completeOwnFleet(commands ...*cobra.Command) {
	connect := func(ctx context.Context) (*dispatcher.Client, func(), error) {
		if !p.fleetElsewhere() {
			return nil, nil, errNoFleet
		}
		return p.connect(ctx)
	}
	stored := (&conn.Caller{Connect: connect}).Completes(conn.Agents)
	for _, cmd := range commands {
		_ = cmd.RegisterFlagCompletionFunc("agent", func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			folder := cmd.Flag("agents").Value.String()
			if p.fleetElsewhere() || folder == "" {
				return stored(cmd, args, prefix)
			}
			defs, _ := agents.Load(folder) // a file that is wrong has no agent to offer
			return conn.Completions(conn.Offered(defs, conn.AgentOffer), prefix), cobra.ShellCompDirectiveNoFileComp
		})
	}
	cli.Complete(connect, commands...)
}
