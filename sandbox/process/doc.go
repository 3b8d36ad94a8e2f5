// Package process runs programs that are not trusted, confined by the Linux kernel.
//
// [New] proves at its start what this machine can enforce, by running children that try to break out, and returns a
// [Native] runner or an [UnavailableError] that names what is missing: it never runs a program with less than
// [Config.Require]. [Init] must be called in the first line of main, because the runner starts its own executable again,
// under another name, as the process that confines itself and becomes the program.
//
// A program sees the workspace of its run, a temporary folder of its own, and the host's programs and libraries read-only.
// It gets the environment that the [Command] states and nothing of the worker's: no variable, no open file, no process, no
// socket. It has no network but, if [Command.Proxy] is set, a proxy inside the worker. It and all processes that it starts
// have ended when [Native.Run] returns.
//
// All of them share the host's kernel: a program that exploits a defect of the kernel is not stopped. The page
// docs/sandbox.md says what is stopped by which layer, and what is not.
package process
