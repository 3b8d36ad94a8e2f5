package memory

import (
	"testing"

	"github.com/longshore-run/longshore/dispatcher/cli/folder"
)

// A document is missing from a folder when its name is below it, and not in a part of it that could not be read.
func TestWhatAFolderLacks(t *testing.T) {
	t.Parallel()
	r := rootOf("docs", &folder.Folder{LeftOut: []folder.LeftOut{{Path: "closed", Why: folder.WhyUnreadable}, {Path: "draft.md", Why: folder.WhyIgnored}}})
	for name, want := range map[string]bool{
		"docs/a.md": true, "docs/draft.md": true, "docs/closed.md": true, "docs/open/closed/a.md": true,
		"docs/closed": false, "docs/closed/a.md": false, "docs/closed/deep/a.md": false, "docs": false, "docs2/a.md": false, "a/docs/a.md": false, "": false,
	} {
		if got := r.lacks(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
