package cli

import (
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

const (
	tableGap     = 2  // columns between two cells
	leastOfProse = 12 // columns that a cell of prose is cut to at most
)

// prose are the headings of the columns that may be cut where a terminal is narrow. Others hold what people copy.
var prose = []string{"INPUT", "DESCRIPTION", "WHAT", "WHY", "REASON", "COMMENT"} //nolint:gochecknoglobals // a constant

// table is rows of cells below each other. It fits in the width of a terminal if cutting prose can make it; anywhere else it is
// whole.
type table struct {
	w     io.Writer
	rows  [][]string
	width int // of the terminal; 0: it is none
}

func newTable(w io.Writer) *table {
	t := &table{w: w}
	if f, ok := w.(*os.File); ok {
		_ = control(f, func(fd int) error { // a file that is no terminal has no width
			width, _, err := term.GetSize(fd)
			if err == nil {
				t.width = max(width, minWidth)
			}
			return err
		})
	}
	return t
}

// writeRow adds a row; flush writes all.
func writeRow(t *table, cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = visible(cell)
	}
	t.rows = append(t.rows, row)
}

func flush(t *table) error {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		for i, cell := range row {
			cell = truncate(cell, widths[i])
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-columns(cell)+tableGap))
			}
		}
		b.WriteByte('\n')
	}
	t.rows = nil
	return write(t.w, b.String())
}

// widths are those of the columns, in columns of a terminal.
func (t *table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cell))
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
		if slices.Contains(prose, heading) {
			cut := min(over, max(widths[i]-leastOfProse, 0))
			widths[i], over = widths[i]-cut, over-cut
		}
	}
	return widths
}
