// Package command is the command line of longshore: the root command, the commands that start a fleet or a part of one or
// need none, and how each ends. [Run] does what a command line asks for and returns the exit code; main adds the signals.
//
// Commands that link parts of a worker or an auditor are packages below this one. Those that need a client alone are in
// dispatcher/cli.
package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/command/audit"
	"github.com/longshore-run/longshore/deploy/command/doctor"
	"github.com/longshore-run/longshore/deploy/command/keyset"
	"github.com/longshore-run/longshore/deploy/command/memory"
	"github.com/longshore-run/longshore/deploy/command/policy"
	"github.com/longshore-run/longshore/deploy/command/replay"
	"github.com/longshore-run/longshore/deploy/command/tools"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/dispatcher/cli/runs"
)

// Run does what the arguments ask for, prints an error to the error output, and returns one of the exit codes. When the
// context ends, it stops what it started and then returns.
func Run(ctx context.Context, p Process, args []string) int {
	root := p.commands()
	cli.Group(root)
	cli.Usage(root)
	root.SetArgs(args)
	return exitCode(ctx, root.ExecuteContext(ctx), p.Stderr)
}

// Tree returns the root command of a process with every other below it, for those that describe or check them all.
func Tree(p Process) *cobra.Command { return p.commands() }

// commands returns the root command with every other below it.
func (p *Process) commands() *cobra.Command {
	raw := p.raw()
	root := &cobra.Command{
		Use: "longshore", Short: "A dispatch hall for AI agents",
		Long: "Longshore takes tasks from backends, queues them on NATS JetStream, and has a fleet of workers run the\n" +
			"agents that do them. Every step is an event. Try: longshore run \"Write a haiku into haiku.txt\"",
		Version: p.Version, SilenceUsage: true, SilenceErrors: true,
	}
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	run := p.runCommand()
	root.AddCommand(p.devCommand(), p.dispatcherCommand(), p.workerCommand(), run, p.pricesCommand(), p.webhookKeyCommand(), p.healthCommand(), p.initCommand())
	root.AddCommand(cli.Version(p.Version, raw))
	root.AddCommand(cli.Commands(p.connect, p.terminal(p.Stderr, p.Stdout))...)
	for _, c := range root.Commands() {
		switch c.Name() {
		case "keys":
			c.AddCommand(keyset.Commands(keyset.Config{Environ: p.Environ, Raw: raw})...)
		case "memory":
			imports := memory.Import(p.connect, p.terminal(p.Stderr, p.Stdout))
			cli.Complete(p.connect, imports)
			c.AddCommand(imports, memory.Quality(p.Environ))
		}
	}
	recorded := []*cobra.Command{replay.Command(p.connect, raw), policy.Command(p.connect, raw)}
	cli.Complete(p.connect, recorded...)
	root.AddCommand(recorded...)
	root.AddCommand(doctor.Command(doctor.Config{Environ: p.Environ, Version: p.Version, Raw: raw}))
	root.AddCommand(tools.Command(tools.Config{Environ: p.Environ, Version: p.Version, Raw: raw}))
	root.AddCommand(audit.Command(p.Version, p.Environ, raw))
	forEval := p.terminal(p.Stderr, p.Stdout)
	forEval.Ephemeral = !p.fleetElsewhere()
	eval := runs.Eval(p.evalFleet, forEval)
	p.completeOwnFleet(run, eval)
	root.AddCommand(eval)
	return root
}
