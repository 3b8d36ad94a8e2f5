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

// memoryRecalled tells what a run begins with, and where it came from.
func memoryRecalled(d messages.MemoryRecalled) render.Line {
	switch {
	case d.Error != "":
		return render.Line{Mark: render.Attention, Text: "long-term memory could not be searched: " + d.Error}
	case len(d.Memories) == 0:
		return render.Line{Mark: render.Info, Text: "long-term memory: nothing about the task"}
	}
	line := render.Line{Mark: render.Info, Text: fmt.Sprintf("long-term memory: %d recalled", len(d.Memories)+d.More)}
	for _, m := range d.Memories[:min(len(d.Memories), maxMemoriesTold)] {
		line.Text += fmt.Sprintf("; %s/%s", m.Collection, m.ID)
		switch {
		case m.Document != "":
			line.Text += fmt.Sprintf(" (%s, part %d)", m.Document, m.Part)
		case m.Run != "":
			line.Text += fmt.Sprintf(" (run %s)", m.Run)
		}
	}
	return line
}

// maxMemoriesTold bounds the memories that a line names.
const maxMemoriesTold = 3
