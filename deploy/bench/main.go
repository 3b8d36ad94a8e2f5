package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
	"github.com/longshore-run/longshore/messages/bus"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // a reader that went away is an error like any other, and leaves nothing behind
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	env := stage.Env{Log: log, Get: os.Getenv}
	var err error
	if role := os.Getenv(measure.RoleVariable); role != "" {
		err = measure.Play(ctx, env.Players(), role, os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr, env)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run reads the flags and measures.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, env stage.Env) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	short := flags.Bool("short", false, "small counts: about a minute in all, for CI")
	only := flags.String("only", "", "measure one thing: "+strings.Join(parts(), ", "))
	profile := flags.String("cpuprofile", "", "write CPU profiles, and next to each what was allocated: of the throughput's worker "+
		"to this `file`, of its servers to file.servers, of the floor to file.floor and file.floor.servers, of the capacity's worker "+
		"to file.capacity, of the whole's worker, servers, dispatcher and auditor to file.whole, file.whole.servers and so on, and likewise of the "+
		"long runs to file.long1000 and of the wide ones to file.wide1000")
	sealed := flags.Bool("encrypt", false, "encrypt what is stored, as a fleet with a keyset does")
	bundles := flags.Bool("bundles", false, "publish events that come together as one message, as workers with LONGSHORE_EVENT_BUNDLES do")
	replicas := flags.Int("replicas", 1, "copies of each stream, on so many NATS servers in one process: for -only whole and -only throughput")
	partitions := flags.Int("partitions", 1, "how many streams there are of logs, events and tasks each, as of `longshore init --partitions`: likewise. The floor of the throughput has one")
	rounds := flags.Int("rounds", 0, "rounds of the throughput and its floor (default 3, with -short 1)")
	runs := flags.Int("runs", 0, "runs of each round, and of the retention (default 5000, with -short 2000)")
	warmup := flags.Int("warmup", 0, "runs before the first that counts (default 1000, with -short 256)")
	sizes := flags.String("retained", "", "sizes of the growth and of the memory, in runs: numbers with commas between, each larger than the one before")
	settle := flags.Duration("settle", 0, "how long the runs of the growth and of the memory rest before what NATS holds and its last sweep are measured (default 5m10s, with -short 0)")
	calls := flags.Int("calls", 1, "model calls of each run of the growth: those of the other parts make 3")
	heap := flags.String("heapprofile", "", "write to this `file` what NATS holds at the end of the growth or of the memory; GODEBUG=memprofilerate=4096 makes it finer")
	limit := flags.Duration("limit", 0, "give up after this time (default 1h, with -short 5m)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *only != "" && !slices.Contains(parts(), *only) {
		return fmt.Errorf("-only: %q is not one of %s", *only, strings.Join(parts(), ", "))
	}
	if *replicas != 1 && *replicas != 3 && *replicas != 5 {
		return errors.New("-replicas must be 1, 3 or 5")
	}
	if *partitions < 1 || *partitions > bus.MaxPartitions {
		return fmt.Errorf("-partitions must be from 1 to %d", bus.MaxPartitions)
	}
	if env.Replicas, env.Partitions = *replicas, *partitions; (*replicas > 1 || *partitions > 1) && *only != partWhole && *only != partThroughput {
		return fmt.Errorf("-replicas and -partitions need -only %s or -only %s", partWhole, partThroughput)
	}
	if *sealed {
		if err := stage.Encrypt(); err != nil {
			return err
		}
	}
	if *bundles {
		if err := stage.Bundle(); err != nil {
			return err
		}
	}
	p := fullPlan()
	if *short {
		p = shortPlan()
	}
	if *rounds < 0 || *runs < 0 || *warmup < 0 {
		return errors.New("-rounds, -runs and -warmup must not be below 0")
	}
	p.Rounds, p.Runs, p.Warmup = cmp.Or(*rounds, p.Rounds), cmp.Or(*runs, p.Runs), cmp.Or(*warmup, p.Warmup)
	if *sizes != "" {
		var err error
		if p.Retained, err = increasing(*sizes); err != nil {
			return fmt.Errorf("-retained: %w", err)
		}
		p.Copies = p.Retained
	}
	if *settle > 0 {
		p.RetainedSettle = *settle
	}
	if *calls < 1 {
		return errors.New("-calls must be at least 1")
	}
	p.RetainedSteps, p.HeapProfile = *calls, *heap
	if *limit > 0 {
		p.Limit = *limit
	}
	return measureParts(ctx, p, *only, *profile, stdout, env)
}

// increasing reads numbers, each larger than the one before.
func increasing(list string) ([]int, error) {
	var out []int
	last := 0
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n <= last {
			return nil, fmt.Errorf("%q must be numbers that increase, such as 1000,5000", list)
		}
		out, last = append(out, n), n
	}
	return out, nil
}
