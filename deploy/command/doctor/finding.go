package doctor

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

// Status is how bad something is.
type Status string

// Statuses.
const (
	OK   Status = "ok"
	Warn Status = "warn" // it works, and may not for long
	Fail Status = "fail"
	Skip Status = "skip" // it was not looked at, or could not be
)

// Finding is what a check found. Its texts may hold what others wrote.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Found  string `json:"found"`
	Do     string `json:"do,omitempty"` // one sentence; there is one unless all is well
}

func ok(check, format string, args ...any) Finding {
	return Finding{Check: check, Status: OK, Found: fmt.Sprintf(format, args...)}
}

func warn(check, do, format string, args ...any) Finding {
	return Finding{Check: check, Status: Warn, Found: fmt.Sprintf(format, args...), Do: do}
}

func fail(check, do, format string, args ...any) Finding {
	return Finding{Check: check, Status: Fail, Found: fmt.Sprintf(format, args...), Do: do}
}

func skip(check, do, format string, args ...any) Finding {
	return Finding{Check: check, Status: Skip, Found: fmt.Sprintf(format, args...), Do: do}
}

// text is the finding for people.
func (f *Finding) text() string {
	s := fmt.Sprintf("%-4s  %-18s  %s\n", f.Status, render.Visible(f.Check), render.Visible(f.Found))
	if f.Do != "" {
		s += fmt.Sprintf("%26s→ %s\n", "", render.Visible(f.Do))
	}
	return s
}

// doctor checks what one environment names.
type doctor struct {
	env           *environment
	timeout       time.Duration // of each check
	call          bool
	data, monitor string
	version       string
}

// examine yields what was found, group after group; the checks of a group run together.
func (d *doctor) examine(ctx context.Context) iter.Seq[[]Finding] {
	groups := []func(context.Context) []Finding{d.settings, d.messageStore, d.cache, d.models, d.tools, d.keys, d.folders, d.machine}
	return func(yield func([]Finding) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		found := make([]chan []Finding, len(groups))
		for i, look := range groups {
			found[i] = make(chan []Finding, 1)
			go func() { found[i] <- look(ctx) }()
		}
		stopped := false
		for _, c := range found { // all are waited for, whatever happens
			if group := <-c; !stopped && !yield(group) {
				stopped = true
				cancel()
			}
		}
	}
}

// within bounds one check.
func (d *doctor) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.timeout)
}

// settings are the first thing that a process would refuse.
func (d *doctor) settings(context.Context) []Finding {
	if d.env.wrong != nil {
		return []Finding{fail("settings", "set it as `longshore "+d.env.role+" --help` says, or name another --role", "a %s would not start: %v", d.env.role, d.env.wrong)}
	}
	return []Finding{ok("settings", "those of a %s", d.env.role)}
}
