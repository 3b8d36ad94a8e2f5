package cli

import (
	"io"
	"strings"
	"time"
)

// bar is a line that is written over; on a terminal only.
type bar struct {
	c     *commands
	out   io.Writer
	at    time.Time
	shown bool
}

// barEvery bounds how often it is drawn.
const barEvery = 100 * time.Millisecond

func (b *bar) draw(text string) {
	now := b.c.options.Now()
	if !b.c.options.Terminal || b.shown && now.Sub(b.at) < barEvery {
		return
	}
	frames := []rune(spinner)
	head := string(frames[int(now.UnixMilli()/barEvery.Milliseconds())%len(frames)]) + " "
	b.at, b.shown = now, true
	_ = write(b.out, "\r\x1b[K"+fitted(head, visible(text), "", b.c.options.Width()-1)) // what cannot be shown is not missed
}

func (b *bar) clear() {
	if b.shown {
		b.shown = false
		_ = write(b.out, "\r\x1b[K")
	}
}

// cells show how much of a whole is done.
func cells(done, all int) string {
	full := 0
	if all > 0 {
		full = min(barWidth*done/all, barWidth)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "]"
}
