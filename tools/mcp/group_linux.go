package mcp

import (
	"os/exec"
	"syscall"
)

// group puts a process into a group of its own, and has the kernel kill it when the worker is gone.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
