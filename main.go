// Command longshore runs a fleet of AI agents and talks to one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/replaycmd"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/observability"
)

// version is set by the linker.
var version = "0.1.0-dev"

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitSignal = 130
)

func main() {
	ctx, stop := untilSignal()
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
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
		os.Exit(exitSignal)
	}()
	return ctx, cancel
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use: "longshore", Short: "A dispatch hall for AI agents",
		Long: "Longshore takes tasks from backends, puts them on NATS JetStream, and has a fleet of workers run the\n" +
			"agents that do them. Every step is an event. Try: longshore run \"Write a haiku into haiku.txt\"",
		Version: version, SilenceUsage: true, SilenceErrors: true,
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(devCommand(), dispatcherCommand(), workerCommand(), runCommand())
	root.AddCommand(fleet.PricesCommand(usageError, os.Getenv))
	root.AddCommand(fleet.WebhookKeyCommand(usageError, os.Environ))
	root.AddCommand(cli.Commands(connect, terminal(stderr, stdout))...)
	root.AddCommand(replaycmd.Command(connect, !isTerminal(stdout)))
	root.AddCommand(cli.Eval(evalFleet, terminal(stderr, stdout)))
	cli.Group(root)
	cli.Usage(root)
	root.SetArgs(args)
	return exitCode(root.ExecuteContext(ctx), stderr)
}

// errInterrupted means that a person stopped what only lives in this process.
var errInterrupted = errors.New("interrupted: the run was given up together with the fleet in this process")

// exitCode prints an error, once and in one line, and says how the process ends.
func exitCode(err error, stderr io.Writer) int {
	var (
		usage  *cli.UsageError
		set    *settings.Error
		failed *cli.RunFailed
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &failed): // its report is the message
		return exitFailed
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(stderr, "longshore:", err)
		return exitSignal
	case errors.As(err, &usage), errors.As(err, &set), errors.Is(err, dispatcher.ErrUnknownAgent):
		fmt.Fprintln(stderr, "longshore:", err)
		return exitUsage
	default:
		fmt.Fprintln(stderr, "longshore:", err)
		return exitFailed
	}
}

// connect opens a client by the environment.
func connect(ctx context.Context) (*dispatcher.Client, func(), error) {
	var s settings.Client
	if err := settings.Load(&s, os.Environ()); err != nil {
		return nil, nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	nc, err := fleet.Connect(ctx, s.NATS, fleet.Client, log)
	if err != nil {
		return nil, nil, err
	}
	var c *dispatcher.Client
	if s.Scoped {
		c, err = dispatcher.NewTenant(ctx, nc, s.Tenant)
	} else {
		c, err = dispatcher.New(ctx, nc)
	}
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return c, nc.Close, nil
}

func logger(cmd *cobra.Command, s settings.Logs, secrets []string) (*slog.Logger, error) {
	return observability.NewLogger(cmd.ErrOrStderr(), observability.LogConfig{Level: s.Level, Format: s.Format, Redact: secrets})
}

// terminal says how text is shown: steps on stderr, results on stdout.
func terminal(stderr, stdout io.Writer) cli.Options {
	_, noColor := os.LookupEnv("NO_COLOR")
	tty := isTerminal(stderr) && os.Getenv("TERM") != "dumb"
	return cli.Options{Terminal: tty, Color: tty && !noColor, Raw: !isTerminal(stdout), User: os.Getenv("USER"), Tenant: os.Getenv("LONGSHORE_TENANT"), Width: func() int { return width(stderr) }}
}

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

func usageError(text string) error { return &cli.UsageError{Err: errors.New(text)} }
