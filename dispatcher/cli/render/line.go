package render

import (
	"strings"
	"time"
)

// mark says at a glance what a line is about.
type mark string

// What lines may be about.
const (
	Info      mark = "•"
	Fine      mark = "✓"
	Bad       mark = "✗"
	Waiting   mark = "‖"
	Attention mark = "!"
)

// Control sequences for colors.
const (
	Dim    = "\x1b[2m"
	Red    = "\x1b[31m"
	green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	Normal = "\x1b[0m"
)

// Line is one thing worth telling. Its texts may be hostile until it is shown.
type Line struct {
	Mark  mark
	Text  string // empty: nothing to tell
	Note  string // shown in parentheses behind the text
	Minor bool   // not told on a terminal, where the progress line says it
	Whole bool   // not cut to a line: it says what to do
}

// OnTerminal is the line cut to a width.
func (l Line) OnTerminal(prefix string, width int, color bool) string {
	text, note := Visible(l.Text), l.shownNote()
	room := width - 1 - Columns(prefix) - Columns(string(l.Mark)+" ")
	if l.Whole {
		text = Truncate(text, wholeWidth)
	} else if left := room - Columns(note); left >= MinWidth/2 {
		text = Truncate(text, left)
	} else {
		text, note = Truncate(text+note, room), ""
	}
	if !color {
		return prefix + string(l.Mark) + " " + text + note
	}
	if note != "" {
		note = Dim + note + Normal
	}
	return prefix + l.color() + string(l.Mark) + Normal + " " + text + note
}

// Plain is the line for a log.
func (l Line) Plain(prefix string, at time.Time) string {
	return at.Format(time.TimeOnly) + " " + prefix + Truncate(Visible(l.Text), l.plainWidth()) + l.shownNote()
}

func (l Line) plainWidth() int {
	if l.Whole {
		return wholeWidth
	}
	return PlainWidth
}

// maxNote keeps a hostile note from filling the line.
const maxNote = 60

func (l Line) shownNote() string {
	if l.Note == "" {
		return ""
	}
	return " (" + Truncate(Visible(strings.TrimSpace(l.Note)), maxNote) + ")"
}

func (l Line) color() string {
	switch l.Mark {
	case Fine:
		return green
	case Bad:
		return Red
	case Waiting, Attention:
		return Yellow
	case Info:
		return Dim
	default:
		return ""
	}
}
