package index

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxGaps bounds what a row remembers of missing events. Beyond it the lowest gap is given up: its events, should they
// still come, do not count.
const maxGaps = 32

// numbers are the running numbers of the events that a row has seen. The zero value has seen none.
type numbers struct {
	last uint64
	gaps [][2]uint64 // below last, in order: from and to, both missing
}

// add reports whether a number is new.
func (n *numbers) add(x uint64) bool {
	if x > n.last {
		if x > n.last+1 {
			n.gaps = append(n.gaps, [2]uint64{n.last + 1, x - 1})
			if len(n.gaps) > maxGaps {
				n.gaps = n.gaps[1:]
			}
		}
		n.last = x
		return true
	}
	for i, g := range n.gaps {
		if x < g[0] || x > g[1] {
			continue
		}
		var left [][2]uint64
		if g[0] < x {
			left = append(left, [2]uint64{g[0], x - 1})
		}
		if x < g[1] {
			left = append(left, [2]uint64{x + 1, g[1]})
		}
		n.gaps = append(n.gaps[:i:i], append(left, n.gaps[i+1:]...)...)
		if len(n.gaps) > maxGaps {
			n.gaps = n.gaps[1:]
		}
		return true
	}
	return false
}

// String is such as "9" or "9 1-3 7-7".
func (n *numbers) String() string {
	var b strings.Builder
	b.WriteString(strconv.FormatUint(n.last, 10))
	for _, g := range n.gaps {
		fmt.Fprintf(&b, " %d-%d", g[0], g[1])
	}
	return b.String()
}

func parseNumbers(s string) (n numbers, err error) {
	last, rest, _ := strings.Cut(s, " ")
	if n.last, err = strconv.ParseUint(last, 10, 64); err != nil {
		return n, fmt.Errorf("read the numbers of events: %w", err)
	}
	for part := range strings.FieldsSeq(rest) {
		from, to, ok := strings.Cut(part, "-")
		a, err1 := strconv.ParseUint(from, 10, 64)
		b, err2 := strconv.ParseUint(to, 10, 64)
		if !ok || err1 != nil || err2 != nil {
			return n, fmt.Errorf("read the numbers of events: %q: %w", part, errors.Join(err1, err2))
		}
		n.gaps = append(n.gaps, [2]uint64{a, b})
	}
	return n, nil
}
