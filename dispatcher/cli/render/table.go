package render

import (
	"io"
	"strings"
)

// Widths of cells.
const (
	ListedInput  = 60 // columns of a text in a list
	ListedToken  = 64 // and of a name
	tableGap     = 2  // columns between two cells
	leastOfProse = 12 // columns that a cell of prose is cut to at most
)

// isProse reports whether the column below a heading may be cut where a terminal is narrow. Others hold what people copy.
func isProse(heading string) bool {
	switch heading {
	case "INPUT", "DESCRIPTION", "WHAT", "WHY", "REASON", "COMMENT":
		return true
	}
	return false
}

// Table is rows of cells below each other. It fits in the width of a terminal if cutting prose can make it; anywhere else it is
// whole.
type Table struct {
	w     io.Writer
	rows  [][]string
	width int // of the terminal; 0: it is none
}

// NewTable returns a table for a writer, which may be a terminal.
func NewTable(w io.Writer) *Table {
	t := &Table{w: w}
	if width := terminalWidth(w); width > 0 {
		t.width = max(width, MinWidth)
	}
	return t
}

// Row adds a row, whose cells may be hostile.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = Visible(cell)
	}
	t.rows = append(t.rows, row)
}

// Flush writes all rows.
func (t *Table) Flush() error {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		for i, cell := range row {
			cell = Truncate(cell, widths[i])
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-Columns(cell)+tableGap))
			}
		}
		b.WriteByte('\n')
	}
	t.rows = nil
	return Write(t.w, b.String())
}

// widths are those of the columns, in columns of a terminal.
func (t *Table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Columns(cell))
		}
	}
	all := tableGap * max(len(widths)-1, 0)
	for _, w := range widths {
		all += w
	}
	if t.width == 0 || all < t.width {
		return widths
	}
	over := all - (t.width - 1)
	for i, heading := range t.rows[0] {
		if isProse(heading) {
			cut := min(over, max(widths[i]-leastOfProse, 0))
			widths[i], over = widths[i]-cut, over-cut
		}
	}
	return widths
}
