package admin

import (
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/conn"
)

// Commands are those that operate a fleet.
func Commands(c *conn.Caller) []*cobra.Command {
	fleet := fleets{c}
	return []*cobra.Command{
		deadLetters{c}.dead(), keys{c}.keys(), quotas{c}.quotasCommand(), fleet.lanes(), fleet.workersCommand(), fleet.drainCommand(), fleet.why(),
		fleet.pause(), fleet.resume(), indexes{c}.index(),
	}
}
