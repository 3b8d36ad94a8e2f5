package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/worker/policy"
)

// stream is text written in pieces.
func stream(t *testing.T, r *policy.Redactor, text string, size int) string {
	t.Helper()
	var out strings.Builder
	w := r.Writer(&out)
	for rest := text; rest != ""; {
		piece := rest[:min(size, len(rest))]
		rest = rest[len(piece):]
		if n, err := w.Write([]byte(piece)); err != nil || n != len(piece) {
			t.Fatalf("write %q: %d, %v", piece, n, err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWriterInPieces(t *testing.T) {
	r := policy.NewRedactor(key, "abcdefgh", "ghijklmn", "abcdefgh-longer", "ababab")
	for name, text := range map[string]string{
		"none":         "nothing to hide",
		"ends in some": "it begins sk-proj-01234",
		"many":         key + key + " " + key,
		"overlapping":  "-abcdefghijklmn-abcdefgh-long-ghijklmnabcdefgh-longer",
		"periodic":     "ababababababab abab ababa bababab",
	} {
		t.Run(name, func(t *testing.T) {
			for size := 1; size <= len(text); size++ {
				if diff := cmp.Diff(r.String(text), stream(t, r, text, size)); diff != "" {
					t.Fatalf("pieces of %d: %s", size, diff)
				}
			}
		})
	}
}

func TestWriterSplitAnywhere(t *testing.T) {
	r := policy.NewRedactor(key, "other-secret")
	text := "first " + key + "other-secret" + key[:9] + " last"
	for cut := range len(text) {
		var out strings.Builder
		w := r.Writer(&out)
		for _, piece := range []string{text[:cut], text[cut:]} {
			if _, err := w.Write([]byte(piece)); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), key[:10]) {
				t.Errorf("cut at %d: the beginning of a secret is passed on: %q", cut, out.String())
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r.String(text), out.String()); diff != "" {
			t.Errorf("cut at %d: %s", cut, diff)
		}
	}
}

func TestWriterHoldsBackOnlyWhatMayBeASecret(t *testing.T) {
	var out strings.Builder
	w := policy.NewRedactor(key).Writer(&out)
	for _, step := range []struct{ write, want string }{
		{"a line\n", "a line\n"},
		{"token " + key[:5], "a line\ntoken "},
		{key[5:10], "a line\ntoken "},
		{"no", "a line\ntoken " + key[:10] + "no"},
	} {
		if _, err := w.Write([]byte(step.write)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, out.String()); diff != "" {
			t.Fatalf("after %q: %s", step.write, diff)
		}
	}
}

func TestWriterWithoutSecrets(t *testing.T) {
	var none *policy.Redactor
	if got := stream(t, none, key, 3); got != key {
		t.Errorf("got %q", got)
	}
}

type brokenPipe struct{}

var errBroken = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterReportsErrors(t *testing.T) {
	w := policy.NewRedactor(key).Writer(brokenPipe{})
	if n, err := w.Write([]byte("text")); n != 0 || !errors.Is(err, errBroken) {
		t.Errorf("write: %d, %v", n, err)
	}
	w = policy.NewRedactor(key).Writer(brokenPipe{})
	if _, err := w.Write([]byte(key[:4])); err != nil {
		t.Errorf("nothing is passed on yet: %v", err)
	}
	if err := w.Flush(); !errors.Is(err, errBroken) {
		t.Errorf("flush: %v", err)
	}
}
