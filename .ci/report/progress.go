package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// quiet is how long nothing may be printed before a line says what is happening.
const quiet = 15 * time.Second

// progress knows the packages that are tested, each once for every command, and says what is happening while nothing else is printed.
type progress struct {
	mu      sync.Mutex
	began   time.Time
	printed time.Time
	waiting []string             // that have not begun, in the order of go list
	running map[string]time.Time // since when
	done    int
	all     int
}

func newProgress(packages []string) *progress {
	now := time.Now()
	return &progress{began: now, printed: now, waiting: packages, all: len(packages), running: map[string]time.Time{}}
}

// keep prints a line whenever it was quiet, until stop is closed.
func (p *progress) keep(stop <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			p.mu.Lock()
			if now.Sub(p.printed) >= quiet {
				p.printed = now
				fmt.Println(p.line(now))
			}
			p.mu.Unlock()
		case <-stop:
			return
		}
	}
}

// line says how far it is. The caller holds mu.
func (p *progress) line(now time.Time) string {
	var runs []string
	for name, since := range p.running {
		runs = append(runs, fmt.Sprintf("%s (%.0fs)", short(name), now.Sub(since).Seconds()))
	}
	slices.Sort(runs)
	out := fmt.Sprintf("...   %.0fs: %d of %d packages done", now.Sub(p.began).Seconds(), p.done, p.all)
	if len(runs) > 0 {
		out += "; running " + strings.Join(runs, ", ")
	}
	if len(p.waiting) > 0 {
		const most = 3
		out += "; compiling or waiting " + strings.Join(shortAll(p.waiting[:min(most, len(p.waiting))]), ", ")
		if n := len(p.waiting) - most; n > 0 {
			out += fmt.Sprintf(" and %d more", n)
		}
	}
	return out
}

// take notes what an event says of a package, and that something was printed.
func (p *progress) take(e *event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Test != "" || e.Package == "" {
		return
	}
	switch e.Action {
	case "start":
		p.running[e.Package] = time.Now()
		p.begun(e.Package)
	case "pass", "skip", "fail":
		if _, ran := p.running[e.Package]; !ran { // it could not be built
			p.begun(e.Package)
		}
		delete(p.running, e.Package)
		p.done++
	}
}

// begun takes a package off those that wait, once: another command may test it too. The caller holds mu.
func (p *progress) begun(name string) {
	if i := slices.Index(p.waiting, name); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
}

func (p *progress) said() {
	p.mu.Lock()
	p.printed = time.Now()
	p.mu.Unlock()
}

func short(name string) string {
	return strings.TrimPrefix(name, "github.com/longshore-run/longshore/")
}

func shortAll(names []string) (out []string) {
	for _, n := range names {
		out = append(out, short(n))
	}
	return out
}

// follow passes on what a step before the tests prints, and says what is happening: with -v the go command names each package
// that it has compiled.
func follow(step string) error {
	began, lines := time.Now(), make(chan string)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	go func() {
		defer close(lines)
		for in.Scan() {
			lines <- in.Text()
		}
	}()
	ticker := time.NewTicker(quiet)
	defer ticker.Stop()
	last, n := "", 0
	for {
		select {
		case line, more := <-lines:
			switch {
			case !more:
				return in.Err()
			case strings.ContainsAny(line, " :\t"):
				fmt.Println(line)
			default:
				last, n = line, n+1
			}
		case <-ticker.C:
			out := fmt.Sprintf("...   %s: %.0fs", step, time.Since(began).Seconds())
			if n > 0 {
				out += fmt.Sprintf(", %d packages, last %s", n, short(last))
			}
			fmt.Println(out)
		}
	}
}
