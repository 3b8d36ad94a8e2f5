package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/longshore-run/longshore/deploy/fleet"
)

// roleVariable makes this binary one of the processes that a measurement consists of.
const roleVariable = "LONGSHORE_BENCH_ROLE"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // a reader that went away is an error like any other, and leaves nothing behind
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var err error
	if role := os.Getenv(roleVariable); role != "" {
		err = play(ctx, role, os.Stdin, os.Stdout, log)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr, log)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run reads the flags and measures.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, log *slog.Logger) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	short := flags.Bool("short", false, "small counts: below a minute in all, for CI")
	only := flags.String("only", "", "measure one thing: "+strings.Join(parts(), ", "))
	profile := flags.String("cpuprofile", "", "write CPU profiles, and next to each what was allocated: of the throughput's worker "+
		"to this `file`, of its servers to file.servers, of the floor to file.floor and file.floor.servers, of the capacity's worker "+
		"to file.capacity")
	sealed := flags.Bool("encrypt", false, "encrypt what is stored, as a fleet with a keyset does")
	limit := flags.Duration("limit", 0, "give up after this time (default 5m, with -short 1m)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *only != "" && !slices.Contains(parts(), *only) {
		return fmt.Errorf("-only: %q is not one of %s", *only, strings.Join(parts(), ", "))
	}
	if *sealed {
		if err := encrypt(); err != nil {
			return err
		}
	}
	p := fullPlan()
	if *short {
		p = shortPlan()
	}
	if *limit > 0 {
		p.Limit = *limit
	}
	return measure(ctx, p, *only, *profile, stdout, log)
}

// keepHeap tunes the garbage collector of this process as the commands do, for a worker with so many slots, or a dispatcher.
func keepHeap(ctx context.Context, slots int) *background {
	return runInBackground(ctx, func(ctx context.Context) error {
		if os.Getenv("GOGC") == "" {
			fleet.KeepHeap(ctx, slots)
		}
		return nil
	})
}

// keysetText is the keyset of this measurement; empty: nothing is encrypted.
func keysetText() string { return os.Getenv(keysetVariable) }
