//go:build unix && !linux

package mcp

import (
	"os/exec"
	"syscall"
)

// group puts a process into a group of its own.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
