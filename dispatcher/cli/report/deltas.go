package report

import (
	"context"
	"strings"
	"sync"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

// writtenRows is how many rows of a terminal show the end of a reply that is being written.
const writtenRows = 6

// ShowDeltas follows the replies of a run while they are written, until stop is called, which waits for its end. That
// they cannot be followed is no failure: message_end brings them.
func ShowDeltas(ctx context.Context, client *dispatcher.Client, run messages.Ref, show func(messages.Live)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() {
		for l, err := range client.Live(ctx, run) {
			if err != nil {
				return
			}
			show(l)
		}
	})
	return func() {
		cancel()
		following.Wait()
	}
}

// wantsDeltas reports whether text is shown while it is written: there is room for that of one run.
func (r *Reporter) wantsDeltas() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.options.Terminal && r.options.Deltas && !r.several()
}

// Live shows a piece of a reply that is being written, or of what a program of a tool writes, above the progress line. The event with
// the whole reply or result replaces it, and a reply that begins anew removes it. It does nothing unless Options.Deltas is set, on a terminal,
// with one run.
func (r *Reporter) Live(l messages.Live) {
	if !r.wantsDeltas() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.run(l.Run)
	if run.hearsOutput(&l) {
		r.print(r.erase() + r.progress())
		return
	}
	if l.Kind == messages.LiveReset && l.Step > run.told {
		r.keepWritten(run, "and starts again")
	}
	switch heard := run.hears(&l); {
	case heard && l.Kind == messages.LiveRetry:
		r.show(run, render.Line{Mark: render.Attention, Text: run.inStep("the model call failed: " + l.Text), Whole: true}, r.options.Now())
	case heard:
		r.print(r.erase() + r.progress())
	}
}

// keepWritten leaves what was written of a reply that was cut off on the screen: a person may have been reading it.
func (r *Reporter) keepWritten(run *run, what string) {
	text := strings.TrimSpace(run.written.Text)
	if text == "" {
		return
	}
	r.print(r.erase() + render.VisibleLines(text) + "\n")
	r.show(run, render.Line{Mark: render.Attention, Text: run.inStep(strings.TrimSpace("the reply was cut off here " + what))}, r.options.Now())
}

// hears takes a piece of a reply into account. False: it changes nothing.
func (r *run) hears(l *messages.Live) bool {
	if r.ended || l.Step <= r.told || !r.written.Add(l) {
		return false
	}
	switch {
	case l.Kind == messages.LiveRetry:
		r.doing = "retrying"
	case l.Kind == messages.LiveReset:
		r.doing = "the reply starts again"
	case r.written.Text != "":
		r.doing = "writing"
	default:
		r.doing = "thinking"
	}
	return true
}

// hearsOutput takes a piece of what a program writes into account, until the call has returned. False: it changes nothing.
func (r *run) hearsOutput(l *messages.Live) bool {
	if r.ended || l.Step <= r.told && !r.begun(l.CallID) { // the calls of a step that is told are known
		return false
	}
	return r.output.Add(l)
}

// whole drops the partial reply of a step: the event that follows contains all of it.
func (r *run) whole(step int) {
	r.told = max(r.told, step)
	if r.written.Step <= step {
		r.written = messages.LiveReply{}
	}
}

// rows are the last rows of the reply that is being written.
func (r *run) rows(width int) []string {
	text := r.written.Text
	if text == "" {
		text = r.written.Reasoning
	}
	if text == "" {
		text = r.output.Text
	}
	const most = 4 // bytes of a character
	if end := len(text) - writtenRows*width*most; end > 0 {
		text = strings.ToValidUTF8(text[end:], "")
	}
	rows := wrapped(strings.ReplaceAll(render.VisibleLines(strings.TrimSpace(text)), "\t", "    "), width)
	return rows[max(0, len(rows)-writtenRows):]
}

// wrapped is a text in rows of at most so many columns.
func wrapped(text string, width int) []string {
	var rows []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		used, from := 0, 0
		for i, c := range line {
			if n := render.ColumnsOf(c); used+n > width {
				rows = append(rows, line[from:i])
				used, from = n, i
			} else {
				used += n
			}
		}
		rows = append(rows, line[from:])
	}
	return rows
}
