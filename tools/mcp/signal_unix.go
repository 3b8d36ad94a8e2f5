//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// terminate asks a process and its children to end.
func terminate(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// kill ends a process and its children.
func kill(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
