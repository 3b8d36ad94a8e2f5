package cli

import (
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/admin"
	"github.com/longshore-run/longshore/dispatcher/cli/catalog"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/dispatcher/cli/runs"
	"github.com/longshore-run/longshore/dispatcher/cli/top"
)

// Commands are all of the client. They write to the command's own outputs. Connect is
// called once what was asked for is known to be sound. At most one Options says how they show text, of which Out and
// Names do not count: Terminal and Color are about the error output, Raw is about the output. Without one there is no
// live progress, and the output is fit for a terminal.
func Commands(connect conn.Connect, options ...report.Options) []*cobra.Command {
	c := &conn.Caller{Connect: connect}
	if len(options) > 0 {
		c.Options = options[0]
	}
	c.Options.Out, c.Options.Names = nil, nil
	c.Options = c.Options.WithDefaults()
	all := append(runs.Commands(c), top.Command(c))
	all = append(append(all, catalog.Commands(c)...), admin.Commands(c)...)
	complete(c, "", all)
	return ofTenant(c.Options.Tenant, all)
}
