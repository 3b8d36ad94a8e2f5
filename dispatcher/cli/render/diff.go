package render

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Unified is a unified diff of two texts; empty if they are the same. Whether the last line has an end does not count.
func Unified(oldName, newName, before, after string) (string, error) {
	before, after = withLineEnd(before), withLineEnd(after)
	diff, err := udiff.ToUnified(oldName, newName, before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil {
		return "", fmt.Errorf("compare %s with %s: %w", oldName, newName, err)
	}
	return diff, nil
}

// withLineEnd is a text whose last line has an end.
func withLineEnd(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}
