//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// minOfAsynq is the target: runs per second, of Asynq's.
const minOfAsynq = 0.8

// workload is what each peer works.
type workload struct {
	Warmup int // runs before the measurement
	Runs   int
	Units  int // of work in a run, each a job
	Slots  int // jobs at once
}

func (w workload) all() int { return w.Warmup + w.Runs }

// result is what a peer did in a round.
type result struct {
	Peer          string  `json:"peer"`
	Round         int     `json:"round"`
	Runs          int     `json:"runs"`
	Seconds       float64 `json:"seconds"`
	RunsPerSecond float64 `json:"runsPerSecond"`
	WorkCPU       float64 `json:"workCpuMicrosPerRun"`
	ServersCPU    float64 `json:"serversCpuMicrosPerRun"`
	CPU           float64 `json:"cpuMicrosPerRun"` // of both
}

// errNoServer means that the machine does not have the server of a peer.
var errNoServer = errors.New("is not on this machine")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	short := flags.Bool("short", false, "one round of few runs, for CI")
	rounds := flags.Int("rounds", 3, "how often each is measured, by turns")
	runs := flags.Int("runs", 5000, "runs of each round")
	units := flags.Int("units", 5, "units of work in a run of the peers")
	bench := flags.String("bench", "", "`file` of a built deploy/bench (default: it is built)")
	limit := flags.Duration("limit", 30*time.Minute, "give up after this time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *rounds < 1 || *runs < 1 || *units < 1 {
		return errors.New("-rounds, -runs and -units must be at least 1")
	}
	w := workload{Warmup: 1000, Runs: *runs, Units: *units, Slots: 256}
	if *short {
		w.Warmup, w.Runs, *rounds = 256, min(*runs, 500), 1
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return fmt.Errorf("make temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if *bench == "" {
		if *bench, err = build(ctx, dir); err != nil {
			return err
		}
	}
	return compare(ctx, dir, *bench, *rounds, w, json.NewEncoder(stdout))
}

// compare measures all by turns and prints.
func compare(ctx context.Context, dir, bench string, rounds int, w workload, out *json.Encoder) error {
	done := map[string][]result{}
	var names []string
	for round := 1; round <= rounds; round++ {
		for _, peer := range []struct {
			name string
			run  func(context.Context) ([]result, error)
		}{
			{"longshore", func(ctx context.Context) ([]result, error) { return longshore(ctx, bench, w) }},
			{"asynq", func(ctx context.Context) ([]result, error) { return one(runAsynq(ctx, dir, w)) }},
			{"river", func(ctx context.Context) ([]result, error) { return one(runRiver(ctx, dir, w)) }},
		} {
			results, err := peer.run(ctx)
			if errors.Is(err, errNoServer) {
				if err := out.Encode(map[string]string{"name": "leftOut", "peer": peer.name, "why": err.Error()}); err != nil {
					return fmt.Errorf("print: %w", err)
				}
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", peer.name, err)
			}
			for _, r := range results {
				r.Round, r.Peer = round, cmp.Or(r.Peer, peer.name)
				if done[r.Peer] == nil {
					names = append(names, r.Peer)
				}
				done[r.Peer] = append(done[r.Peer], r)
				if err := out.Encode(struct {
					Name string `json:"name"`
					result
				}{"peer", r}); err != nil {
					return fmt.Errorf("print: %w", err)
				}
			}
		}
	}
	return summary(done, names, out)
}

func one(r result, err error) ([]result, error) { return []result{r}, err }

// spread is the median of the rounds, the least and the most.
type spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

func spreadOf(values []float64) spread {
	slices.Sort(values)
	return spread{rounded(values[len(values)/2], 3), rounded(values[0], 3), rounded(values[len(values)-1], 3)}
}

// ratios are those of Longshore to a peer.
type ratios struct {
	Name       string  `json:"name"`
	Peer       string  `json:"peer"`
	Throughput spread  `json:"longshoreOfPeer"`      // runs per second
	ByCPU      spread  `json:"longshoreOfPeerByCpu"` // what it would be if both used all of the machine
	Target     float64 `json:"target,omitempty"`
	Met        *bool   `json:"met,omitempty"`
}

// summary prints for each peer the ratios of the rounds.
func summary(done map[string][]result, names []string, out *json.Encoder) error {
	for _, name := range names {
		if name == "longshore" {
			continue
		}
		var rates, cpus []float64
		for i, theirs := range done[name] {
			ours := done["longshore"][i]
			rates = append(rates, ours.RunsPerSecond/theirs.RunsPerSecond)
			cpus = append(cpus, theirs.CPU/ours.CPU)
		}
		r := ratios{Name: "ratio", Peer: name, Throughput: spreadOf(rates), ByCPU: spreadOf(cpus)}
		if name == "asynq" {
			met := r.Throughput.Median >= minOfAsynq
			r.Target, r.Met = minOfAsynq, &met
		}
		if err := out.Encode(r); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	if err := out.Encode(map[string]any{"name": "summary", "cpus": runtime.NumCPU(), "peers": names}); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func rounded(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}
