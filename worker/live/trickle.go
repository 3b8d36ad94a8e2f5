package live

import (
	"strings"
	"unicode/utf8"

	"github.com/longshore-run/longshore/worker/policy"
)

// trickle takes secrets out of text that comes in pieces, and passes whole characters on.
type trickle struct {
	out strings.Builder
	w   *policy.Writer
}

func newTrickle(r *policy.Redactor) *trickle {
	t := &trickle{}
	t.w = r.Writer(&t.out)
	return t
}

// pass returns what is clear now that more has come.
func (t *trickle) pass(text []byte) string {
	_, _ = t.w.Write(text) // a Builder takes everything
	all := t.out.String()
	t.out.Reset()
	cut := len(all) - unfinished(all)
	t.out.WriteString(all[cut:])
	return all[:cut]
}

// rest returns what was held back: the text ends here.
func (t *trickle) rest() string {
	_ = t.w.Flush()
	return t.out.String()
}

// unfinished is how many bytes at the end of a text are the beginning of one character.
func unfinished(s string) int {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if c := s[len(s)-n]; utf8.RuneStart(c) {
			if utf8.FullRuneInString(s[len(s)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// boundary is the first place from i on where a character begins.
func boundary(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}
