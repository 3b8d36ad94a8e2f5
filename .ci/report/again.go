package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	mostAgain  = 5 // more tests that failed have a cause in common
	timesAgain = 3
)

// failure is a test that failed, without its subtests; without a name it is its package.
type failure struct {
	command   int
	pkg, test string
}

func top(test string) string {
	name, _, _ := strings.Cut(test, "/")
	return name
}

func (f failure) compare(g failure) int {
	return cmp.Or(cmp.Compare(f.pkg, g.pkg), cmp.Compare(f.test, g.test), cmp.Compare(f.command, g.command))
}

// grave reports whether an output says what no second try excuses: a data race, or a panic or time-out, after which the other
// tests of the package did not run.
func grave(e *event) bool {
	status, ended := strings.CutPrefix(e.Output, "exit status ")
	return strings.Contains(e.Output, "WARNING: DATA RACE") || strings.HasPrefix(e.Output, "panic: ") ||
		strings.HasPrefix(e.Output, "fatal error: ") || e.Test == "" && ended && strings.TrimSpace(status) != "1"
}

// fail notes that a test or a package failed: a package by itself only if none of its tests did. The caller holds mu.
func (r *results) fail(f failure) {
	r.failures[f] = true
	if f.test != "" {
		return
	}
	for g, n := range r.unended {
		if g.command == f.command && g.pkg == f.pkg && n > 0 {
			r.grave[f.pkg] = true // its process ended meanwhile
		}
	}
	for g := range r.failures {
		if g.command == f.command && g.pkg == f.pkg && g.test != "" {
			delete(r.failures, f)
		}
	}
}

// again runs the tests that failed once more, each alone. On a machine that is busy with all tests at once, one may have waited for
// too short a time: if it passes several times alone it is unsteady, which is told and fails no other. It returns err if any failure
// stays.
func (r *results) again(tests []command, err error) error {
	failures := slices.SortedFunc(maps.Keys(r.failures), failure.compare)
	if err == nil || len(failures) == 0 || len(failures) > mostAgain {
		return err
	}
	for _, f := range failures {
		if f.test == "" || r.grave[f.pkg] {
			return err
		}
	}
	for _, f := range failures {
		fmt.Printf("again: %s %s, alone, %d times\n", f.pkg, f.test, timesAgain)
		t := tests[f.command]
		alone := newResults(newProgress(nil))
		e := alone.run([]command{{
			environment: t.environment,
			flags:       append(slices.Clone(t.flags), fmt.Sprint("-count=", timesAgain), "-run=^"+f.test+"$"),
			packages:    []string{f.pkg},
		}})
		if e != nil || alone.passed < timesAgain {
			return errors.Join(err, e)
		}
		r.unsteady = append(r.unsteady, f.pkg+" "+f.test)
		delete(r.failures, f)
	}
	r.failed = 0
	return nil
}

// tellFailures names what failed once more, at the end, where one looks for it.
func (r *results) tellFailures() {
	for _, f := range slices.SortedFunc(maps.Keys(r.failures), failure.compare) {
		fmt.Printf("failed: %s %s\n", f.pkg, cmp.Or(f.test, "(the package)"))
	}
	for _, name := range r.unsteady {
		fmt.Printf("unsteady: %s failed beside the others and passed %d times alone: find the cause\n", name, timesAgain)
	}
}
