package catalog

import (
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/conn"
)

// Commands are those about what a fleet keeps: agents, prompts, sessions, named workspaces, long-term memory and schedules.
func Commands(c *conn.Caller) []*cobra.Command {
	return []*cobra.Command{
		definitions{revisions{c}}.agentsCommand(), prompts{revisions{c}}.promptsCommand(), sessions(c), workspaces(c), memories{c}.command(), timetables{c}.schedules(),
	}
}
