package sensitive

import (
	"slices"
	"strings"
)

// Stream is Redact for a text that comes in pieces. The zero value is ready. It is for one goroutine.
type Stream struct {
	held   string
	hiding bool // the rest of the text
}

// maxHeld bounds what a Stream holds back, in bytes. Once that much may be part of one thing, the rest of the text is hidden.
const maxHeld = 16 << 10

// Add returns what can be shown of the text so far and was not returned before. The rest may be the beginning of something.
func (s *Stream) Add(piece string) string {
	if s.hiding {
		return ""
	}
	s.held += piece
	cut := settled(s.held)
	out := Redact(s.held[:cut])
	s.held = s.held[cut:]
	if len(s.held) > maxHeld {
		s.held, s.hiding = "", true
		out += Mark
	}
	return out
}

// Rest returns what was held back: the text ends here.
func (s *Stream) Rest() string {
	out := Redact(s.held)
	s.held = ""
	return out
}

// settled is the first place in a text from which on it may be part of something that continues behind its end, as it stands or as its
// View shows it.
func settled(text string) int {
	cut := settledBefore(text, len(text))
	v, differs := Plain(text)
	for was := -1; differs && was != cut; {
		was = cut
		cut = v.begin(cut)
		cut = min(cut, v.at[settledBefore(v.Text, v.index(cut))])
		cut = settledBefore(text, cut)
	}
	return cut
}

// settledBefore is the last place up to a given one over which nothing goes that may be found, private keys among it.
func settledBefore(text string, cut int) int {
	cut = inside(text, cut)
	for _, key := range slices.Backward(privateKeys(text)) {
		if key.Start < cut && cut < key.End {
			cut = inside(text, key.Start) // what leads to it is judged with it
		}
	}
	return cut
}

// privateKeys are those in a text, and what may be the beginning of one. What has not ended continues behind the end of the text.
func privateKeys(text string) (found []Span) {
	if !strings.Contains(text, beginKey) {
		return nil
	}
	closed := 0
	for _, at := range privateKey().FindAllStringIndex(text, -1) {
		closed = at[1]
		whole := strings.HasSuffix(text[:closed], "PRIVATE KEY-----") || strings.HasSuffix(text[:closed], "PRIVATE KEY BLOCK-----")
		if !whole || !strings.Contains(text[at[0]:closed], "-----END ") {
			closed++
		}
		found = append(found, Span{at[0], closed})
	}
	if closed > len(text) {
		return found
	}
	i := strings.LastIndex(text[closed:], beginKey)
	if i >= 0 && strings.Trim(text[closed+i+len(beginKey):], "ABCDEFGHIJKLMNOPQRSTUVWXYZ -") == "" {
		found = append(found, Span{closed + i, len(text) + 1})
	}
	return found
}

// inside is the last place in a text, up to a given one, over which nothing goes that may be found, whatever follows.
func inside(text string, cut int) int {
	end := len(text)
	for was := -1; was != cut; {
		was = cut
		for _, c := range []struct {
			in    func(byte) bool
			begin func(stretch string) int // where in it something may begin; -1: nowhere
		}{{isWord, atOnce}, {isNumber, beginNumber}, {isAccount, beginAccount}} {
			if cut == 0 || !c.in(text[cut-1]) || cut < end && !c.in(text[cut]) {
				continue
			}
			from, to := cut, cut
			for from > 0 && c.in(text[from-1]) {
				from--
			}
			for to < end && c.in(text[to]) {
				to++
			}
			if at := c.begin(text[from:to]); at >= 0 {
				cut = min(cut, from+at)
			}
		}
	}
	return cut
}

func isWord(b byte) bool { return classes[b]&aWord != 0 || b == '@' || b == '%' || b == '+' }

func isNumber(b byte) bool { return classes[b]&aNumber != 0 }

func isAccount(b byte) bool { return isDigit(b) || isUpper(b) || b == ' ' }

func atOnce(string) int { return 0 }

func beginNumber(s string) int { return strings.IndexAny(s, "+(0123456789") }

// beginAccount is where two letters and two digits stand.
func beginAccount(s string) int {
	for i := 3; i < len(s); i++ {
		if isDigit(s[i]) && isDigit(s[i-1]) && isUpper(s[i-2]) && isUpper(s[i-3]) {
			return i - 3
		}
	}
	return -1
}
