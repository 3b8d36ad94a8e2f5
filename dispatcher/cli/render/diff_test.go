package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnified(t *testing.T) {
	lines := func(s string) string { return strings.ReplaceAll(s, " ", "\n") + "\n" }
	for name, tc := range map[string]struct{ before, after, want string }{
		"the same":    {"a\n", "a\n", ""},
		"from none":   {"", "a\n", "--- old\n+++ new\n@@ -0,0 +1 @@\n+a\n"},
		"to none":     {"a\n", "", "--- old\n+++ new\n@@ -1 +0,0 @@\n-a\n"},
		"in between":  {lines("1 2 3 4 5 6 7 8 9"), lines("1 2 3 4 x 6 7 8 9"), "--- old\n+++ new\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
		"two places":  {lines("a 1 2 3 4 5 6 7 8 b"), lines("x 1 2 3 4 5 6 7 8 y"), "--- old\n+++ new\n@@ -1,4 +1,4 @@\n-a\n+x\n 1\n 2\n 3\n@@ -7,4 +7,4 @@\n 6\n 7\n 8\n-b\n+y\n"},
		"no line end": {"a\nb", "a\nc", "--- old\n+++ new\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
		"a line end":  {"a", "a\n", ""},
		"neighbours":  {lines("a 1 2 b"), lines("x 1 2 y"), "--- old\n+++ new\n@@ -1,4 +1,4 @@\n-a\n+x\n 1\n 2\n-b\n+y\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Unified("old", "new", tc.before, tc.after)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
	many := strings.Repeat("a\n", 5000)
	other := strings.Repeat("b\n", 5000)
	if got, err := Unified("old", "new", many, other); err != nil || strings.Count(got, "\n") != 10_003 {
		t.Errorf("%d lines, %v", strings.Count(got, "\n"), err)
	}
}
