package command

import (
	"io"
	"strings"
)

// Process is what the commands know of the process that they run in.
type Process struct {
	Version        string          // of this program
	Environ        func() []string // as os.Environ
	Stdout, Stderr io.Writer       // a terminal is recognised if they are files
}

// lookup returns the value of a variable, and whether it is set.
func (p *Process) lookup(name string) (string, bool) {
	for _, variable := range p.Environ() {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// env returns the value of a variable, empty if it is not set.
func (p *Process) env(name string) string {
	value, _ := p.lookup(name)
	return value
}
