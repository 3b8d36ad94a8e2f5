package command

import (
	"io"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
)

// terminal says how text is shown: steps on stderr, results on stdout.
func (p *Process) terminal(stderr, stdout io.Writer) report.Options {
	options := report.OfTerminal(stderr, stdout, p.lookup)
	options.User, options.Tenant, options.Leaks = p.env("USER"), p.env("LONGSHORE_TENANT"), fleet.Leaks(p.Environ)
	var client settings.Client
	if settings.Read(&client, p.Environ()) == nil { // what is wrong is told by connect
		options.Console = client.Pages()
	}
	return options
}

// raw reports whether JSON is written as it is, which is for an output that is no terminal.
func (p *Process) raw() bool { return !render.IsTerminal(p.Stdout) }
