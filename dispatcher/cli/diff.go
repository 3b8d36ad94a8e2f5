package cli

import (
	"fmt"
	"slices"
	"strings"
)

const (
	diffContext = 3
	maxDiffWork = 16 << 20 // cells of the table; beyond, the changed part is shown as replaced as a whole
)

// line of a comparison: ' ' in both, '-' in the old alone, '+' in the new alone.
type diffLine struct {
	sign byte
	text string
}

// unified is a unified diff of two texts; empty if they are the same.
func unified(oldName, newName, before, after string) string {
	if before == after {
		return ""
	}
	lines := compare(split(before), split(after))
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", oldName, newName)
	for i := 0; i < len(lines); {
		if lines[i].sign == ' ' {
			i++
			continue
		}
		from, to := max(0, i-diffContext), i
		for same := 0; to < len(lines) && same <= 2*diffContext; to++ {
			if same++; lines[to].sign != ' ' {
				same = 0
			}
		}
		for to > i && lines[to-1].sign == ' ' {
			to--
		}
		end := min(len(lines), to+diffContext)
		writeHunk(&out, lines, from, end)
		i = end
	}
	return out.String()
}

func writeHunk(out *strings.Builder, lines []diffLine, from, end int) {
	oldAt, newAt := 1, 1
	for _, l := range lines[:from] {
		if l.sign != '+' {
			oldAt++
		}
		if l.sign != '-' {
			newAt++
		}
	}
	olds, news := 0, 0
	for _, l := range lines[from:end] {
		if l.sign != '+' {
			olds++
		}
		if l.sign != '-' {
			news++
		}
	}
	if olds == 0 {
		oldAt--
	}
	if news == 0 {
		newAt--
	}
	fmt.Fprintf(out, "@@ -%d,%d +%d,%d @@\n", oldAt, olds, newAt, news)
	for _, l := range lines[from:end] {
		out.WriteByte(l.sign)
		out.WriteString(l.text + "\n")
	}
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// compare finds what two texts have in common: the longest common subsequence between their common ends.
func compare(a, b []string) []diffLine {
	var out []diffLine
	add := func(sign byte, lines ...string) {
		for _, l := range lines {
			out = append(out, diffLine{sign, l})
		}
	}
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	add(' ', a[:head]...)
	end := a[len(a)-tail:]
	a, b = a[head:len(a)-tail], b[head:len(b)-tail]
	if len(a)*len(b) > maxDiffWork {
		add('-', a...)
		add('+', b...)
		add(' ', end...)
		return out
	}
	common := make([][]int, len(a)+1) // of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := range slices.Backward(a) {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			add(' ', a[i])
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			add('-', a[i])
			i++
		default:
			add('+', b[j])
			j++
		}
	}
	add('-', a[i:]...)
	add('+', b[j:]...)
	add(' ', end...)
	return out
}
