package runs

import (
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/conn"
)

// Commands are those that submit tasks, follow runs, decide for them and look back at them.
func Commands(c *conn.Caller) []*cobra.Command {
	submit, run, decide := submissions{c}, runs{c}, decisions{c}
	return []*cobra.Command{
		submit.submit(), submit.retry(), run.watch(), run.result(), run.cancel(), run.status(), run.list(), run.fork(), run.steer(), run.feedback(),
		run.logs(), files{c}.files(), run.stats(), decide.inbox(), decide.approvals(), decide.approve(), decide.deny(), decide.answer(), batches{c}.batch(),
	}
}
