// Package engine runs a JavaScript program in this process: it is what a process of the sandbox becomes, which the kernel confines.
// The language alone reaches nothing: console writes to the outputs of the process, readFile, writeFile and listFiles reach the
// folder that the process was started in, and import reaches that folder and the one of packages. Time, memory and depth are
// bounded here too, so that a program learns which of them it has exceeded.
package engine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"modernc.org/quickjs"
)

// Arg is the only argument of a process that is to run a program: see [Main].
const Arg = "sandbox-javascript"

// Program is what a process reads from its standard input, as JSON.
type Program struct {
	Code     string        `json:"code"`
	Time     time.Duration `json:"time"`
	Memory   int64         `json:"memory"`             // bytes
	Packages string        `json:"packages,omitempty"` // folder that import finds names in; empty: none
}

// Exit codes of a process.
const (
	exitThrown = 1   // the program threw something
	exitTime   = 124 // its time was up
	exitUsage  = 125 // the program could not be read
)

// maxStack is how deep calls may be, in frames. The stack of a goroutine, which holds them, may be much larger.
const maxStack = 16 << 10

// spare is memory to find out with what a program threw that has used up its own.
const spare = 4 << 20

// Main runs the program that stdin holds, if args, with the name of the process, say so; otherwise it returns -1. It returns the exit
// code of the process. It must be called before the process does anything else.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) != 2 || args[1] != Arg {
		return -1
	}
	var p Program
	if err := json.NewDecoder(stdin).Decode(&p); err != nil {
		_, _ = fmt.Fprintf(stderr, "read program: %v\n", err)
		return exitUsage
	}
	out := bufio.NewWriter(stdout)
	code := run(&p, out, stderr)
	if err := out.Flush(); err != nil {
		return exitUsage
	}
	return code
}

// run runs a program and returns the exit code.
func run(p *Program, out *bufio.Writer, stderr io.Writer) int {
	vm, err := quickjs.NewVM()
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "start engine: %v\n", err)
		return exitUsage
	}
	// The process ends now, and the kernel takes its memory: Close would only take time.
	vm.SetMemoryLimit(uintptr(p.Memory))
	vm.SetMaxStackSize(maxStack)
	folder, err := os.OpenRoot(".")
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "open folder: %v\n", err)
		return exitUsage
	}
	h := &host{out: out, err: stderr, folder: folder}
	if err := h.register(vm); err != nil {
		_, _ = fmt.Fprintf(stderr, "start engine: %v\n", err)
		return exitUsage
	}
	m := &modules{folder: folder}
	if p.Packages != "" {
		if m.packages, err = os.OpenRoot(p.Packages); err != nil {
			_, _ = fmt.Fprintf(stderr, "open packages: %v\n", err)
			return exitUsage
		}
	}
	vm.SetModuleLoader(m.load, m.normalise)
	until := time.Now().Add(p.Time)
	if err := vm.SetEvalTimeout(p.Time); err != nil {
		_, _ = fmt.Fprintf(stderr, "start engine: %v\n", err)
		return exitUsage
	}
	return h.ended(h.evaluate(vm, p, until), !time.Now().Before(until), p)
}

// evaluate runs a program as a module, and what it has promised.
func (h *host) evaluate(vm *quickjs.VM, p *Program, until time.Time) error {
	v, err := vm.EvalValue(p.Code, quickjs.EvalModule)
	if err != nil {
		return err
	}
	vm.SetMemoryLimit(uintptr(p.Memory) + spare)
	// The value of a module is a promise, which says whether it has thrown.
	var thrown error
	settled := false
	if _, err := v.Then(func(quickjs.Value) { settled = true }, func(reason quickjs.Value) {
		settled = true
		thrown = quickjs.ErrorFromValue(reason)
	}); err != nil {
		return err
	}
	if err := vm.SetEvalTimeout(max(time.Millisecond, time.Until(until))); err != nil {
		return err
	}
	_, jobs := vm.ExecutePendingJobs()
	switch {
	case thrown != nil:
		return thrown
	case jobs != nil:
		return jobs
	case !settled:
		return errors.New("the program waits for a promise that is never settled")
	default:
		return nil
	}
}

// ended tells on standard error what a program threw.
func (h *host) ended(err error, late bool, p *Program) int {
	if err == nil {
		return 0
	}
	_ = h.out.Flush()
	thrown, _ := errors.AsType[*quickjs.Error](err)
	switch {
	case late:
		_, _ = fmt.Fprintf(h.err, "stopped: it ran for longer than %v\n", p.Time)
		return exitTime
	case strings.Contains(err.Error(), "out of memory"):
		_, _ = fmt.Fprintf(h.err, "%v: it may use %d MiB\n", err, p.Memory>>20)
	case thrown != nil && thrown.Stack != "":
		_, _ = fmt.Fprintf(h.err, "%v\n%s", err, thrown.Stack)
	default:
		_, _ = fmt.Fprintf(h.err, "%v\n", err)
	}
	return exitThrown
}
