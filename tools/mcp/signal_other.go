//go:build !unix

package mcp

import "os/exec"

// group does nothing: this system knows no groups of processes.
func group(*exec.Cmd) {}

// terminate ends a process at once: this system has no gentler way.
func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// kill ends a process.
func kill(cmd *exec.Cmd) error { return cmd.Process.Kill() }
