package report

import (
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

// frameTime is how long a frame of the spinner stays: fast enough to look alive, too slow to cost anything.
const frameTime = 120 * time.Millisecond

// eraseLine goes to the line's start and clears it.
const eraseLine = "\r\x1b[K"

// eraseAbove goes to the line above and clears it.
const eraseAbove = "\x1b[A" + eraseLine

// Reporter shows the progress of runs. On a terminal each completed operation becomes a line, and a status line at the bottom,
// rewritten in place, shows what is in progress. Elsewhere it writes plain lines only. Safe for concurrent use.
//
// Errors of the writer are ignored, since there is nowhere to report them. Those of Options.Out are not.
type Reporter struct {
	w       io.Writer
	options Options

	stop    chan struct{} // closed by closing
	closing sync.Once
	ticking sync.WaitGroup

	mu     sync.Mutex // guards what follows
	runs   []*run     // in the order in which they became known
	began  time.Time
	frame  int
	drawn  bool // the progress line is on the screen
	asking bool // a person is being asked, and types
	above  int  // rows of a reply that is being written, above the progress line
}

// NewReporter returns a Reporter that writes to w, which is best the error output: then results can be redirected
// alone. Close it: on a terminal it keeps time in a goroutine of its own.
func NewReporter(w io.Writer, options Options) *Reporter {
	r := &Reporter{w: w, options: options.WithDefaults(), stop: make(chan struct{})}
	if r.options.Out == nil {
		r.options.Out = w
	}
	r.began = r.options.Now()
	if r.options.Terminal {
		r.ticking.Go(r.tick)
	}
	return r
}

// Close removes the progress line and waits for what NewReporter started. It may be called more than once.
func (r *Reporter) Close() {
	r.closing.Do(func() { close(r.stop) })
	r.ticking.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.options.Terminal && !r.several() {
		for _, run := range r.runs {
			if !run.ended {
				r.keepWritten(run, "")
			}
		}
	}
	r.print(r.erase())
}

func (r *Reporter) tick() {
	ticker := time.NewTicker(frameTime)
	defer ticker.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-ticker.C:
			r.mu.Lock()
			r.frame++
			r.print(r.erase() + r.progress())
			r.mu.Unlock()
		}
	}
}

// Begin makes a run known before its first event: it waits for a worker.
func (r *Reporter) Begin(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run(id)
	r.print(r.erase() + r.progress())
}

// Event shows an event. One that was shown before is ignored, and so are those of a type that is not known.
func (r *Reporter) Event(e messages.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.run(e.Subject)
	if n := e.Number(); n > 0 {
		if n <= run.seen {
			return
		}
		run.seen = n
	}
	r.show(run, run.tell(&e), e.Time)
	if r.options.Tree && e.Name() == messages.EventDelegated {
		r.below(run, &e)
	}
}

// Note shows a remark about a run.
func (r *Reporter) Note(id, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.show(r.run(id), render.Line{Mark: render.Attention, Text: text}, r.options.Now())
}

// link shows where a run is in the console, if that is known.
func (r *Reporter) link(run messages.Ref) {
	address := render.RunLink(r.options.Console, run)
	if address == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.show(r.run(run.Run), render.Line{Mark: render.Info, Text: "see it at " + address, Whole: true}, r.options.Now())
}

// Done shows how a run ended and writes its result, whole, to Options.Out. The error is that of writing it.
func (r *Reporter) Done(result *messages.AgentResult) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.run(result.ID)
	if !run.ended {
		r.show(run, run.finished(result), r.options.Now())
	}
	text := ResultText(result, r.options.Raw)
	if text == "" {
		return nil
	}
	if r.several() && !r.options.Tree {
		text = render.Visible(run.name) + ":\n" + text
	}
	r.print(r.erase())
	err := render.Write(r.options.Out, text)
	r.print(r.progress())
	return err
}

// run returns the state of a run and creates it if necessary.
func (r *Reporter) run(id string) *run {
	for _, known := range r.runs {
		if known.id == id {
			return known
		}
	}
	name := r.options.Names[id]
	if name == "" {
		name = shortID(id)
	}
	added := &run{id: id, name: name, began: r.options.Now(), doing: "waiting for a worker"}
	r.runs = append(r.runs, added)
	return added
}

// below makes the children of a run known. Their names begin with a mark for each level that they are below.
func (r *Reporter) below(parent *run, e *messages.Event) {
	var d messages.DelegatedData
	if json.Unmarshal(e.Data, &d) != nil {
		return // of another version
	}
	for _, c := range d.Children {
		child := r.run(c.Run)
		if child != parent && child.depth == 0 {
			child.depth = parent.depth + 1
			child.name = strings.Repeat("›", child.depth) + " " + shortID(c.Run)
		}
	}
}

// several reports whether a line must say whose it is.
func (r *Reporter) several() bool {
	return r.options.Tree || max(len(r.runs), len(r.options.Names)) > 1
}

// show writes a line above the progress line, in one write so that nothing flickers.
func (r *Reporter) show(run *run, l render.Line, at time.Time) {
	if l.Text == "" || l.Minor && r.options.Terminal {
		r.print(r.erase() + r.progress())
		return
	}
	prefix := ""
	if r.several() {
		prefix = r.padded(run)
	}
	var text string
	if r.options.Terminal {
		text = l.OnTerminal(prefix, r.width(), r.options.Color)
	} else {
		text = l.Plain(prefix, at.In(r.options.Now().Location()))
	}
	r.print(r.erase() + text + "\n" + r.progress())
}

// padded is the short name of a run, as wide as the widest.
func (r *Reporter) padded(of *run) string {
	widest := 0
	for _, name := range r.options.Names {
		widest = max(widest, render.Columns(render.Visible(name)))
	}
	for _, other := range r.runs {
		widest = max(widest, render.Columns(render.Visible(other.name)))
	}
	name := render.Visible(of.name)
	return name + strings.Repeat(" ", widest-render.Columns(name)+1)
}

func (r *Reporter) width() int { return max(r.options.Width(), render.MinWidth) }

// erase is what removes the progress line, if there is one.
func (r *Reporter) erase() string {
	if !r.drawn {
		return ""
	}
	above := r.above
	r.drawn, r.above = false, 0
	return eraseLine + strings.Repeat(eraseAbove, above)
}

func (r *Reporter) print(s string) {
	if s != "" {
		_, _ = io.WriteString(r.w, s) // there is nowhere to report an error
	}
}

// ResultText is the text of a result, ending in a line break unless it is empty.
func ResultText(result *messages.AgentResult, raw bool) string {
	text, ok := result.Result.(string)
	if !ok && result.Result != nil {
		b, err := json.MarshalIndent(result.Result, "", "  ")
		if err != nil {
			b = []byte("the result cannot be shown as text")
		}
		text = string(b)
	}
	if !raw {
		text = render.VisibleLines(text)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}
