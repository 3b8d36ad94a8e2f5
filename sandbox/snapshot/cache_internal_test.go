package snapshot

import (
	"testing"
	"time"
)

// A file that had changed right before it was read may have changed right after, with the same times: it is read again.
func TestRacilyClean(t *testing.T) {
	t.Parallel()
	read := time.Unix(1_700_000_000, 500_000_000)
	for name, tc := range map[string]struct {
		modified, meta time.Time
		want           bool
	}{
		"long before":                   {read.Add(-time.Minute), read.Add(-time.Minute), true},
		"right before":                  {read.Add(-tick), read.Add(-time.Minute), false},
		"a little earlier":              {read.Add(-tick - 1), read.Add(-tick - 1), true},
		"its name, right before":        {read.Add(-time.Minute), read.Add(-1), false},
		"after":                         {read.Add(time.Hour), read, false},
		"a whole second before":         {time.Unix(1_700_000_000, 0), time.Unix(1_700_000_000, 0), false},
		"whole seconds, longer before":  {time.Unix(1_699_999_998, 0), time.Unix(1_699_999_998, 0), true},
		"one whole second among others": {time.Unix(1_700_000_000, 0), read.Add(-time.Minute), true},
	} {
		s := stamp{inode: 1, size: 2, modified: tc.modified.UnixNano(), meta: tc.meta.UnixNano()}
		k := known{stamp: s, at: read}
		if got := k.holds(&s); got != tc.want {
			t.Errorf("changed %s: holds is %v", name, got)
		}
	}
	k := known{stamp: stamp{inode: 1, size: 2}, at: read}
	for _, s := range []stamp{{inode: 2, size: 2}, {inode: 1, size: 3}, {inode: 1, size: 2, modified: 1}, {inode: 1, size: 2, meta: 1}, {inode: 1, size: 2, exec: true}} {
		if k.holds(&s) {
			t.Errorf("%+v is taken for the file that was read", s)
		}
	}
}
