// Command longshore runs a fleet of AI agents and talks to one.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/longshore-run/longshore/deploy/command"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/tools/code/engine"
)

// version is set by the linker.
var version = "0.1.0-dev"

func main() {
	process.Init()                                                               // in the child that runs a program for a tool, it does not return
	if code := engine.Main(os.Args, os.Stdin, os.Stdout, os.Stderr); code >= 0 { // a program of run_code: see package engine
		os.Exit(code)
	}
	ctx, stop := untilSignal()
	defer stop()
	os.Exit(command.Run(ctx, command.Process{Version: version, Environ: os.Environ, Stdout: os.Stdout, Stderr: os.Stderr}, os.Args[1:]))
}

// untilSignal returns a context that ends at the first SIGINT or SIGTERM. The second ends the process at once.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(render.ExitSignal)
	}()
	return ctx, cancel
}
