package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
	FailedBuild, ImportPath       string
}

// results are what the tests said, of all commands.
type results struct {
	progress *progress

	mu                      sync.Mutex // of what follows
	output                  map[string][]string
	leftOut                 map[string]string
	servers                 []string
	passed, failed, skipped int
	failures                map[failure]bool
	unended                 map[failure]int // tests that began
	grave                   map[string]bool // packages with a failure that no second try excuses
	unsteady                []string        // tests that passed alone
}

func newResults(p *progress) *results {
	return &results{progress: p, output: map[string][]string{}, leftOut: map[string]string{}, failures: map[failure]bool{}, unended: map[failure]int{}, grave: map[string]bool{}}
}

// run runs the commands at the same time, and returns when all have ended.
func (r *results) run(tests []command) error {
	errs := make([]error, len(tests))
	var wg sync.WaitGroup
	for i, t := range tests {
		wg.Go(func() {
			errs[i] = t.lines(func(line []byte) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.take(i, line)
			})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// take notes one line of a command. The same package may be in several. The caller holds mu.
func (r *results) take(command int, line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		fmt.Println(string(line))
		return
	}
	r.progress.take(&e)
	if e.Action == "build-output" || (e.Action == "pass" || e.Action == "fail") && e.Test == "" {
		r.progress.said()
	}
	name := e.Package + " " + e.Test
	key := fmt.Sprint(command, " ", name)
	f := failure{command, e.Package, top(e.Test)}
	switch e.Action {
	case "run":
		r.unended[f]++
	case "pass", "fail", "skip":
		r.unended[f]--
	}
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		r.output[key] = append(r.output[key], e.Output)
		if grave(&e) {
			r.grave[e.Package] = true
		}
		if _, what, ok := strings.Cut(e.Output, "server: "); ok && e.Test != "" {
			r.servers = append(r.servers, strings.TrimSpace(what))
		}
		if strings.Contains(e.Output, "left out") && e.Test != "" {
			r.leftOut[name] = strings.TrimSpace(e.Output)
		}
	case "pass":
		if e.Test == "" {
			fmt.Printf("ok    %-70s %6.1fs\n", e.Package, e.Elapsed)
			return
		}
		r.passed++
		delete(r.output, key)
	case "skip":
		if e.Test == "" {
			return
		}
		r.skipped++
		for _, line := range r.output[key] {
			if !strings.Contains(line, "--- SKIP") && !strings.Contains(line, "=== ") {
				r.leftOut[name] = strings.TrimSpace(line)
			}
		}
	case "fail":
		r.failed++
		r.fail(f)
		fmt.Printf("FAIL  %-70s %6.1fs\n", strings.TrimSpace(name), e.Elapsed)
		for _, line := range r.output[key] {
			fmt.Print("      ", line)
		}
		delete(r.output, key)
	}
}

func (r *results) summary() {
	slices.Sort(r.servers)
	for _, s := range slices.Compact(r.servers) {
		fmt.Println("ran on", s)
	}
	for _, name := range slices.Sorted(maps.Keys(r.leftOut)) {
		fmt.Printf("left out: %s: %s\n", name, r.leftOut[name])
	}
	r.tellFailures()
	fmt.Printf("%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
}
