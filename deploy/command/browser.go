package command

import (
	"fmt"
	"net"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
)

// pagesOf is the address of the console of a fleet in this process, without a slash at its end; empty if it has none.
func pagesOf(cfg *fleet.DevConfig, dev *fleet.Dev) string {
	if !cfg.HasConsole() {
		return ""
	}
	address := dev.API
	if host, port, err := net.SplitHostPort(address); err == nil && (host == "" || net.ParseIP(host).IsUnspecified()) {
		address = net.JoinHostPort("localhost", port) // every address of this machine, which is none to go to
	}
	return dev.Scheme + "://" + address
}

// openPages opens an address in a browser, and says so if there is no program that does. What it starts is the user's: it may be the
// browser itself, and stays when this process ends.
func (p *Process) openPages(cmd *cobra.Command, address string) {
	program := append(p.browser(), address+"/")
	opener := exec.Cmd{Args: program, Env: p.Environ()}
	var err error
	if opener.Path, err = exec.LookPath(program[0]); err == nil {
		err = opener.Start()
	}
	if err == nil {
		err = opener.Process.Release()
	}
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "no browser was opened: %v: open %s/ yourself, or set BROWSER to a program\n", err, address)
	}
}

// browser is the program that opens an address.
func (p *Process) browser() []string {
	if program := p.env("BROWSER"); program != "" {
		return []string{program}
	}
	switch runtime.GOOS {
	case "darwin":
		return []string{"open"}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		return []string{"xdg-open"}
	}
}
