package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

// spinner are the frames of the progress line.
const spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

// indent stands before the rows of a reply that is being written.
const indent = "  "

// maxShortID is how long an id may be to be shown whole where room is short.
const maxShortID = 12

// shortID is what people tell runs apart by: the end of an id, for generated ones begin with the time.
func shortID(id string) string {
	if len(id) <= maxShortID {
		return id
	}
	return "…" + id[len(id)-6:]
}

// progress draws the progress line; it is empty when there is nothing to wait for.
func (r *Reporter) progress() string {
	if !r.options.Terminal || r.drawn || r.asking {
		return ""
	}
	var active []*run
	total := int64(0)
	for _, run := range r.runs {
		total += run.tokens
		if !run.ended {
			active = append(active, run)
		}
	}
	if len(active) == 0 {
		return ""
	}
	frames := []rune(spinner)
	head := string(frames[r.frame%len(frames)]) + " "
	since, doing := active[0].began, active[0].now()
	if r.several() {
		all := max(len(r.runs), len(r.options.Names))
		head += fmt.Sprintf("%d of %d done · ", len(r.runs)-len(active), all)
		since, doing = r.began, summary(active)
	} else {
		head += render.Visible(shortID(active[0].id)) + " "
	}
	tail := " · " + render.Span(r.options.Now().Sub(since))
	if total > 0 {
		tail += " · " + render.Tokens(total)
	}
	r.drawn = true
	var written strings.Builder
	if !r.several() {
		for _, row := range active[0].rows(r.width() - len(indent) - 1) {
			written.WriteString(indent + row + "\n")
			r.above++
		}
	}
	return written.String() + fitted(head, doing, tail, r.width()-1) // the last column stays free: a terminal may wrap there
}

// fitted puts a line together in which the middle is cut first.
func fitted(head, middle, tail string, width int) string {
	if room := width - render.Columns(head) - render.Columns(tail); room >= 1 {
		return head + render.Truncate(middle, room) + tail
	}
	return render.Truncate(head+middle, width)
}

func summary(active []*run) string {
	parts := make([]string, len(active))
	for i, run := range active {
		parts[i] = render.Visible(run.name) + ": " + run.now()
	}
	return strings.Join(parts, ", ")
}

// now says what a run is up to.
func (r *run) now() string {
	if r.step == 0 {
		return render.Visible(r.doing)
	}
	return render.Visible(fmt.Sprintf("step %d · %s", r.step, r.doing))
}

// since is when what can be trusted says the run began, never later than its first event.
func (r *run) since(queued time.Time) {
	if !queued.IsZero() && queued.Before(r.began) {
		r.began = queued
	}
}
