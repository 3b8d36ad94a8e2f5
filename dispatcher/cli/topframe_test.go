package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// onTerminal is what a terminal of some columns shows after a frame, over what it showed. The cursor stays on the last
// column after a line of the whole width, as that of a real one does which does not wrap.
func onTerminal(shown []string, columns int, drawn string) []string {
	screen := make([][]rune, len(shown))
	for i, line := range shown {
		screen[i] = []rune(line + strings.Repeat(" ", columns-len([]rune(line))))
	}
	row, column := 0, 0
	erase := func(row, column int) { copy(screen[row][column:], []rune(strings.Repeat(" ", columns-column))) }
	for drawn != "" {
		switch {
		case strings.HasPrefix(drawn, screenTop):
			row, column, drawn = 0, 0, drawn[len(screenTop):]
		case strings.HasPrefix(drawn, "\r\n"):
			row, column, drawn = row+1, 0, drawn[len("\r\n"):]
		case strings.HasPrefix(drawn, lineRest):
			erase(row, column)
			drawn = drawn[len(lineRest):]
		case strings.HasPrefix(drawn, screenRest):
			erase(row, column)
			for r := row + 1; r < len(screen); r++ {
				erase(r, 0)
			}
			drawn = drawn[len(screenRest):]
		default:
			screen[row][column] = []rune(drawn)[0]
			column, drawn = min(column+1, columns-1), drawn[len(string([]rune(drawn)[0])):]
		}
	}
	lines := make([]string, len(screen))
	for i := range screen {
		lines[i] = strings.TrimRight(string(screen[i]), " ")
	}
	return lines
}

func TestFrameLeavesTheLastColumn(t *testing.T) {
	before := []string{"old····", "old····", "old····", "old····"}
	for name, lines := range map[string][]string{
		"whole":        {"HEADFOR", "cell 1s", "q quit!"},
		"as many rows": {"HEADFOR", "", "short", "q quit!"},
		"short":        {"a", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			want := make([]string, len(before))
			copy(want, lines)
			if diff := cmp.Diff(want, onTerminal(before, 7, frame(lines))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
