package command

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
)

// terminal says how text is shown: steps on stderr, results on stdout.
func (p *Process) terminal(stderr, stdout io.Writer) report.Options {
	_, noColor := p.lookup("NO_COLOR")
	tty := isTerminal(stderr) && p.env("TERM") != "dumb"
	return report.Options{Terminal: tty, Color: tty && !noColor, Raw: !isTerminal(stdout), User: p.env("USER"), Tenant: p.env("LONGSHORE_TENANT"), Width: func() int { return width(stderr) }, Leaks: fleet.Leaks(p.Environ)}
}

// raw reports whether JSON is written as it is, which is for an output that is no terminal.
func (p *Process) raw() bool { return !isTerminal(p.Stdout) }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// unknownWidth is taken for a terminal that does not say how wide it is.
const unknownWidth = 80

func width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return unknownWidth
}
