package parts

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut says how large the parts of a document are. The zero value is not valid; begin with DefaultCut.
type Cut struct {
	Size    Size // of a part, at most, without the line of headings that it begins with
	Overlap Size // of the part before that a part of the same section repeats, at most
}

// Size is a length of text, in tokens or in characters.
type Size struct {
	N     int
	Chars bool // characters; else tokens, of which each counts as four bytes
}

const (
	bytesOfToken = 4
	leastSize    = 200      // bytes or characters
	mostSize     = 24 << 10 // bytes or characters: of more, no vector tells the meaning
	mostBytes    = 60 << 10 // of a part, whatever its characters are
)

// DefaultCut are parts of about a paragraph or two.
var DefaultCut = Cut{Size: Size{N: 400}, Overlap: Size{N: 50}} //nolint:gochecknoglobals // a constant in all but name

// units is a size in what is counted: bytes or characters.
func (s *Size) units() int {
	if s.Chars {
		return s.N
	}
	return s.N * bytesOfToken
}

func (s *Size) String() string {
	if s.Chars {
		return fmt.Sprintf("%dc", s.N)
	}
	return strconv.Itoa(s.N)
}

// Set reads a size such as 400, of tokens, or 1600c, of characters.
func (s *Size) Set(text string) error {
	number, chars := strings.CutSuffix(text, "c")
	n, err := strconv.Atoi(number)
	if err != nil || strconv.Itoa(n) != number || n < 0 || n > mostSize {
		return errors.New("must be a number of tokens such as 400, or of characters such as 1600c")
	}
	*s = Size{n, chars}
	return nil
}

// Type names the values of a flag.
func (*Size) Type() string { return "size" }

// Check refuses parts that would be too small or too large to be found.
func (c Cut) Check() error {
	switch {
	case c.Size.units() < leastSize || c.Size.units() > mostSize:
		return fmt.Errorf("--chunk-size: must be %d to %d tokens, or %dc to %dc", leastSize/bytesOfToken, mostSize/bytesOfToken, leastSize, mostSize)
	case 2*c.Overlap.units() > c.Size.units():
		return errors.New("--overlap: must be at most half of the size of a chunk")
	default:
		return nil
	}
}

// texts cuts a text at its paragraphs, then at lines, sentences and words. Each but the first begins with the end of the one before.
func (c Cut) texts(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		rest := strings.TrimSpace(text)
		for rest != "" {
			n := c.Size.fits(rest)
			if n < len(rest) {
				n = lastEnd(rest[:n])
			}
			if !yield(strings.TrimSpace(rest[:n])) {
				return
			}
			if n == len(rest) {
				return
			}
			rest = strings.TrimSpace(rest[n-c.repeated(rest[:n]):])
		}
	}
}

// fits is how many bytes of a text a size has room for.
func (s *Size) fits(text string) int {
	most := mostBytes
	if !s.Chars {
		most = s.units()
	}
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	if !s.Chars || len(text) <= s.N {
		return len(text)
	}
	n := 0
	for at := range text {
		if n == s.N {
			return at
		}
		n++
	}
	return len(text)
}

// lastEnd is where a text is cut best, in its second half: after a paragraph, a line, a sentence or a word; else at its end.
func lastEnd(text string) int {
	half := len(text) / 2
	for _, end := range []string{"\n\n", "\n", ". ", "? ", "! ", "。", " "} {
		if at := strings.LastIndex(text, end); at > half {
			return at + len(end)
		}
	}
	return len(text)
}

// repeated is how many bytes at the end of a part the next one begins with: whole words, and less than half of the part.
func (c Cut) repeated(part string) int {
	most := c.Overlap.units()
	if most == 0 {
		return 0
	}
	at, n := len(part), 0
	for at > len(part)/2 {
		r, size := utf8.DecodeLastRuneInString(part[:at])
		if c.Overlap.Chars {
			n++
		} else {
			n += size
		}
		if n > most || r == utf8.RuneError {
			break
		}
		at -= size
	}
	space := strings.IndexFunc(part[at:], unicode.IsSpace)
	if space < 0 {
		return 0
	}
	return len(part) - at - space
}
