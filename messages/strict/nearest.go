package strict

import "strings"

// Nearest returns the known name that an unknown one probably means, the first of equals; empty if none is near. Of names that
// differ by a few bytes it is the one that differs least, else one of which the unknown name is the greater part, as steps is of maxSteps.
func Nearest(name string, known []string) string {
	if len(name) > MaxShown {
		return "" // not a slip
	}
	name = strings.ToLower(name)
	slips := 1
	if len(name) > 4 {
		slips = max(2, len(name)/3)
	}
	best, least, contains := "", slips+1, ""
	for _, k := range known {
		if len(k) > MaxShown {
			continue
		}
		lower := strings.ToLower(k)
		if d := distance(name, lower); d < least {
			best, least = k, d
		}
		if contains == "" && 2*len(name) > len(k) && strings.Contains(lower, name) {
			contains = k
		}
	}
	if best == "" {
		return contains
	}
	return best
}

// distance is how many bytes must be added, removed, replaced or exchanged with their neighbour to make one text of the other.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			least := min(rows[i-1][j], rows[i][j-1]) + 1
			if a[i-1] == b[j-1] {
				least = min(least, rows[i-1][j-1])
			} else {
				least = min(least, rows[i-1][j-1]+1)
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				least = min(least, rows[i-2][j-2]+1)
			}
			rows[i][j] = least
		}
	}
	return rows[len(a)][len(b)]
}
