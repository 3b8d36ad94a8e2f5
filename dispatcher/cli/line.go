package cli

import (
	"strings"
	"time"
)

// mark says at a glance what a line is about.
type mark string

const (
	info      mark = "•"
	fine      mark = "✓"
	bad       mark = "✗"
	waiting   mark = "‖"
	attention mark = "!"
)

// Control sequences for colors.
const (
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	normal = "\x1b[0m"
)

// line is one thing worth telling. Its texts may be hostile until it is shown.
type line struct {
	mark  mark
	text  string // empty: nothing to tell
	note  string // shown in parentheses behind the text
	minor bool   // not told on a terminal, where the progress line says it
	whole bool   // not cut to a line: it says what to do
}

// onTerminal is the line cut to a width.
func (l line) onTerminal(prefix string, width int, color bool) string {
	text, note := visible(l.text), l.shownNote()
	room := width - 1 - columns(prefix) - columns(string(l.mark)+" ")
	if l.whole {
		text = truncate(text, wholeWidth)
	} else if left := room - columns(note); left >= minWidth/2 {
		text = truncate(text, left)
	} else {
		text, note = truncate(text+note, room), ""
	}
	if !color {
		return prefix + string(l.mark) + " " + text + note
	}
	if note != "" {
		note = dim + note + normal
	}
	return prefix + l.color() + string(l.mark) + normal + " " + text + note
}

// plain is the line for a log.
func (l line) plain(prefix string, at time.Time) string {
	return at.Format(time.TimeOnly) + " " + prefix + truncate(visible(l.text), l.plainWidth()) + l.shownNote()
}

func (l line) plainWidth() int {
	if l.whole {
		return wholeWidth
	}
	return plainWidth
}

// maxNote keeps a hostile note from filling the line.
const maxNote = 60

func (l line) shownNote() string {
	if l.note == "" {
		return ""
	}
	return " (" + truncate(visible(strings.TrimSpace(l.note)), maxNote) + ")"
}

func (l line) color() string {
	switch l.mark {
	case fine:
		return green
	case bad:
		return red
	case waiting, attention:
		return yellow
	case info:
		return dim
	default:
		return ""
	}
}
