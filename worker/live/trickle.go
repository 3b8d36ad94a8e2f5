package live

import (
	"strings"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages/sensitive"
	"github.com/longshore-run/longshore/worker/policy"
)

// trickle takes secrets out of text that comes in pieces, and passes whole characters on.
type trickle struct {
	out      strings.Builder
	w        *policy.Writer
	personal *sensitive.Stream // nil: keys and personal data may be shown
}

func newTrickle(r *policy.Redactor, personal bool) *trickle {
	t := &trickle{}
	if personal {
		t.personal = &sensitive.Stream{}
	}
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
	if t.personal != nil {
		return t.personal.Add(all[:cut])
	}
	return all[:cut]
}

// rest returns what was held back: the text ends here.
func (t *trickle) rest() string {
	_ = t.w.Flush()
	if t.personal != nil {
		return t.personal.Add(t.out.String()) + t.personal.Rest()
	}
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
