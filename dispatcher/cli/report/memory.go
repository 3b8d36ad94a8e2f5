package report

import (
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

// memoryWritten tells what a call changed in memories, and what was lost by it.
func memoryWritten(d messages.MemoryWritten) render.Line {
	var words []string
	evicted := 0
	for _, c := range d.Changes {
		word := fmt.Sprintf("%s: %s %s", c.Memory, c.Op, c.Name)
		if c.Removed > 0 {
			word += fmt.Sprintf(" (%d removed)", c.Removed)
		}
		words = append(words, word)
		evicted += c.Evicted
	}
	if d.More > 0 {
		words = append(words, fmt.Sprintf("%d more", d.More))
	}
	line := render.Line{Mark: render.Info, Text: strings.Join(words, "; ")}
	if evicted > 0 {
		line.Mark, line.Text = render.Attention, line.Text+fmt.Sprintf("; older notes removed to make room: %d", evicted)
	}
	return line
}
