// Command report runs the tests and prints what a person wants to know: a line for each package, the output of what
// failed, which servers the tests ran on, what was left out and why, and the counts. It ends with 1 if anything failed.
// Its arguments are variables (NAME=value), flags (-name=value) and import paths for `go test`, which it runs with -json; a
// -- begins another `go test` that runs at the same time. While nothing else is printed it says how many packages are done, which run and which are
// compiled. With LONGSHORE_TEST_AGAIN in its environment it runs the few tests that failed once more, each alone. With -step NAME it follows the output of a step before the tests instead.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "-step" {
		if err := follow(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "read output:", err)
			os.Exit(1)
		}
		return
	}
	tests := commands(os.Args[1:])
	var packages []string
	for _, t := range tests {
		packages = append(packages, t.packages...)
	}
	p := newProgress(packages)
	stop := make(chan struct{})
	defer close(stop)
	go p.keep(stop)
	r := newResults(p)
	err := r.run(tests)
	if os.Getenv("LONGSHORE_TEST_AGAIN") != "" {
		err = r.again(tests, err)
	}
	r.summary()
	if err != nil && r.failed == 0 {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || r.failed > 0 || r.passed == 0 {
		os.Exit(1)
	}
}
