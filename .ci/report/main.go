// Command report reads `go test -json` and prints what a person wants to know: a line for each package, the output of
// what failed, which servers the tests ran on, what was left out and why, and the counts. It ends with 1 if anything
// failed. Its arguments are the packages that are tested: while nothing else is printed it says how many of them are done,
// which run and which are compiled. With -step NAME it follows the output of a step before the tests instead.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
	FailedBuild, ImportPath       string
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "-step" {
		if err := follow(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "read output:", err)
			os.Exit(1)
		}
		return
	}
	p := newProgress(os.Args[1:])
	stop := make(chan struct{})
	defer close(stop)
	go p.keep(stop)
	var (
		output                  = map[string][]string{}
		leftOut                 = map[string]string{}
		servers                 []string
		passed, failed, skipped int
		in                      = bufio.NewScanner(os.Stdin)
	)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text())
			continue
		}
		p.take(&e)
		if e.Action == "build-output" || (e.Action == "pass" || e.Action == "fail") && e.Test == "" {
			p.said()
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "build-output":
			fmt.Print(e.Output)
		case "output":
			output[key] = append(output[key], e.Output)
			if _, what, ok := strings.Cut(e.Output, "server: "); ok && e.Test != "" {
				servers = append(servers, strings.TrimSpace(what))
			}
			if strings.Contains(e.Output, "left out") && e.Test != "" {
				leftOut[key] = strings.TrimSpace(e.Output)
			}
		case "pass":
			if e.Test == "" {
				fmt.Printf("ok    %-70s %6.1fs\n", e.Package, e.Elapsed)
				continue
			}
			passed++
			delete(output, key)
		case "skip":
			if e.Test == "" {
				continue
			}
			skipped++
			for _, line := range output[key] {
				if !strings.Contains(line, "--- SKIP") && !strings.Contains(line, "=== ") {
					leftOut[key] = strings.TrimSpace(line)
				}
			}
		case "fail":
			failed++
			fmt.Printf("FAIL  %-70s %6.1fs\n", strings.TrimSpace(key), e.Elapsed)
			for _, line := range output[key] {
				fmt.Print("      ", line)
			}
			delete(output, key)
		}
	}
	slices.Sort(servers)
	for _, s := range slices.Compact(servers) {
		fmt.Println("ran on", s)
	}
	for _, key := range slices.Sorted(maps.Keys(leftOut)) {
		fmt.Printf("left out: %s: %s\n", key, leftOut[key])
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "read test output:", err)
		os.Exit(1)
	}
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}
