package runlogs

import (
	"strings"
	"testing"
)

func FuzzBlobRef(f *testing.F) {
	for _, s := range []string{"", "a/1/1", strings.Repeat("ab", 32) + "/2/300000", strings.Repeat("AB", 32) + "/1/1", "*/-1/>", "//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := parseBlobRef(s)
		if err != nil {
			return
		}
		if ref.size < 1 || ref.size > maxBlob || ref.parts < 1 || ref.parts > ref.size || strings.ContainsAny(ref.hash, ".*> ") {
			t.Errorf("got %+v of %q", ref, s)
		}
		if again, err := parseBlobRef(ref.String()); err != nil || again != ref {
			t.Errorf("got %+v, %v, want %+v", again, err, ref)
		}
	})
}
