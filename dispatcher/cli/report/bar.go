package report

import (
	"io"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

// Bar is a line that is written over; on a terminal only.
type Bar struct {
	Options *Options
	Out     io.Writer
	at      time.Time
	shown   bool
}

// barWidth is the columns of the bar itself.
const barWidth = 20

// barEvery bounds how often it is drawn.
const barEvery = 100 * time.Millisecond

// Draw shows a text, unless one was shown a moment ago or there is no terminal.
func (b *Bar) Draw(text string) {
	now := b.Options.Now()
	if !b.Options.Terminal || b.shown && now.Sub(b.at) < barEvery {
		return
	}
	frames := []rune(spinner)
	head := string(frames[int(now.UnixMilli()/barEvery.Milliseconds())%len(frames)]) + " "
	b.at, b.shown = now, true
	_ = render.Write(b.Out, "\r\x1b[K"+fitted(head, render.Visible(text), "", b.Options.Width()-1)) // what cannot be shown is not missed
}

// Clear takes the line away.
func (b *Bar) Clear() {
	if b.shown {
		b.shown = false
		_ = render.Write(b.Out, "\r\x1b[K")
	}
}

// Cells show how much of a whole is done.
func Cells(done, all int) string {
	full := 0
	if all > 0 {
		full = min(barWidth*done/all, barWidth)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "]"
}
