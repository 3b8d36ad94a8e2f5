package report

import (
	"io"
	"time"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

// Options say how a Reporter shows runs. The zero value is safe anywhere.
type Options struct {
	Terminal bool              // the writer is a terminal that understands cursor control: show progress in place
	Deltas   bool              // show replies while they are written; on a terminal, of a single run
	Color    bool              // use colors; only on a terminal
	Width    func() int        // columns of the terminal now, asked for each line. Default: 80
	Out      io.Writer         // where results go. Default: the Reporter's writer
	Raw      bool              // Out is no terminal: results go there byte for byte. Else what could steer a terminal is made visible
	Tree     bool              // show the runs below a run that is watched too; lines begin with whose they are
	Names    map[string]string // short names of the runs by id; with more than one, lines begin with them
	User     string            // who decides and changes things, by default
	Tenant   string            // whose runs, by default. Default: messages.DefaultTenant
	Console  string            // address of the console, for links to runs; empty: there are none
	Ask      *Asker            // asks what runs wait for; nil: RunTasks gives up when one waits for a person
	Advice   string            // what else to say then

	// Leaks, if set, tells what secrets of this process stand in a text that is to be stored, and where, without showing them.
	Leaks func(text string) ([]string, error)

	Ephemeral bool // the fleet ends together with this process, and with it what it works

	Now func() time.Time // default: time.Now. Its location is that of the times in plain lines
}

// OfTerminal returns the options of a process whose steps and results go to two outputs: with progress and colors if the steps go
// to a terminal, unless the environment has TERM=dumb or NO_COLOR.
func OfTerminal(steps, results io.Writer, lookup func(variable string) (string, bool)) Options {
	kind, _ := lookup("TERM")
	_, noColor := lookup("NO_COLOR")
	terminal := render.IsTerminal(steps) && kind != "dumb"
	return Options{
		Terminal: terminal, Color: terminal && !noColor, Raw: !render.IsTerminal(results), Width: func() int { return render.Width(steps) },
	}
}

// WithDefaults returns options whose defaults are filled in.
func (o Options) WithDefaults() Options {
	if o.Width == nil {
		o.Width = func() int { return render.DefaultWidth }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
