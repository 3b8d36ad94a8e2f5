package sensitive

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// View is a text as it is looked at a second time: escapes of JSON are the characters that they stand for, also where they are
// escaped themselves; digits, dashes, spaces and full-width forms are those of ASCII; and characters that are not seen are left out.
type View struct {
	Text string

	at  []int // where each byte of Text begins in the text, and where the last one ends
	end []int // where each ends
}

// Plain returns the View of a text; false: it is the text itself.
func Plain(text string) (View, bool) {
	v := view{text: text, places: true}
	if !v.make() {
		return View{Text: text}, false
	}
	last := 0
	if n := len(v.ends); n > 0 {
		last = v.ends[n-1]
	}
	return View{string(v.out), append(v.at, last), v.ends}, true
}

// Span is where a part of the View stands in the text.
func (v *View) Span(start, end int) Span {
	switch {
	case v.at == nil:
		return Span{start, end}
	case start == end:
		return Span{v.at[start], v.at[start]}
	}
	return Span{v.at[start], v.end[end-1]}
}

// begin is a place in the text, or where the escape begins that it is inside of.
func (v *View) begin(place int) int {
	i, found := slices.BinarySearch(v.at, place)
	if !found && i > 0 {
		return v.at[i-1]
	}
	return place
}

// index is where a place in the text is in the View.
func (v *View) index(place int) int {
	i, _ := slices.BinarySearch(v.at, place)
	return min(i, len(v.Text))
}

// view is a View that is being made. Until something differs it has nothing of its own.
type view struct {
	text     string
	places   bool // at and ends are wanted: they take most of the time
	out      []byte
	at, ends []int
}

// make reports whether something differs.
func (v *view) make() bool {
	for i := 0; i < len(v.text); {
		switch c := v.text[i]; {
		case c == '\\':
			i += v.escape(i)
		case c < utf8.RuneSelf:
			n := 1
			for i+n < len(v.text) && v.text[i+n] != '\\' && v.text[i+n] < utf8.RuneSelf {
				n++
			}
			v.keep(i, n)
			i += n
		default:
			i += v.rune(i)
		}
	}
	return v.out != nil
}

// differ makes out, with what was kept before a place.
func (v *view) differ(before int) {
	if v.out != nil {
		return
	}
	v.out = append(make([]byte, 0, len(v.text)), v.text[:before]...)
	if !v.places {
		return
	}
	v.at, v.ends = make([]int, before, len(v.text)+1), make([]int, before, len(v.text))
	for i := range before {
		v.at[i], v.ends[i] = i, i+1
	}
}

func (v *view) keep(from, n int) {
	if v.out == nil {
		return
	}
	v.out = append(v.out, v.text[from:from+n]...)
	for i := from; v.places && i < from+n; i++ {
		v.at, v.ends = append(v.at, i), append(v.ends, i+1)
	}
}

// replace puts a character in the place of n bytes; a negative one: nothing.
func (v *view) replace(from, n int, by rune) {
	v.differ(from)
	if by < 0 {
		return
	}
	v.out = utf8.AppendRune(v.out, by)
	for v.places && len(v.at) < len(v.out) {
		v.at, v.ends = append(v.at, from), append(v.ends, from+n)
	}
}

// rune takes the character at a place and returns its length. What is no UTF-8 at the end may be the beginning of a character.
func (v *view) rune(from int) int {
	r, n := utf8.DecodeRuneInString(v.text[from:])
	switch by := folded(r); {
	case r == utf8.RuneError && n == 1 && !utf8.FullRuneInString(v.text[from:]):
		n = len(v.text) - from
		v.replace(from, n, -1)
	case by == r:
		v.keep(from, n)
	default:
		v.replace(from, n, by)
	}
	return n
}

// escape takes backslashes and what they escape, and returns the length of both. Half an escape at the end is left out.
func (v *view) escape(from int) int {
	const digits = 4
	rest := strings.TrimLeft(v.text[from:], `\`)
	n := len(v.text) - from - len(rest)
	switch {
	case rest == "":
		v.replace(from, n, -1)
		return n
	case strings.IndexByte(`nrtbf`, rest[0]) >= 0:
		v.replace(from, n+1, '\n')
		return n + 1
	case rest[0] == '"' || rest[0] == '/':
		v.replace(from, n+1, rune(rest[0]))
		return n + 1
	case rest[0] == 'u':
		code, all := hex(rest[1:min(len(rest), 1+digits)])
		switch {
		case all == digits:
			v.replace(from, n+1+digits, folded(code))
			return n + 1 + digits
		case 1+all == len(rest):
			v.replace(from, n+1+all, -1)
			return n + 1 + all
		}
	}
	v.keep(from, n)
	return n
}

// hex reads digits, and returns how many there are.
func hex(s string) (code rune, n int) {
	for ; n < len(s); n++ {
		d := strings.IndexByte("0123456789abcdef", s[n]|0x20) //nolint:mnd // lower case, which digits are already
		if d < 0 {
			break
		}
		code = code<<4 | rune(d)
	}
	return code, n
}

// folded is the character of ASCII that another one looks like; -1 for one that is not seen. Letters stay as they are, but for
// full-width ones.
func folded(r rune) rune {
	const fullWidth, ascii, lastFullWidth = 0xFF01, '!', 0xFF5E
	switch {
	case r < utf8.RuneSelf:
		return r
	case r >= fullWidth && r <= lastFullWidth:
		return r - fullWidth + ascii
	case unicode.Is(unicode.Nd, r):
		return digit(r)
	case unicode.Is(unicode.Zs, r):
		return ' '
	case unicode.Is(unicode.Pd, r) || r == '\u2212':
		return '-'
	case r == '\u3002' || r == '\uff61':
		return '.'
	case unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r):
		return -1
	default:
		return r
	}
}

// digit is a decimal digit as one of ASCII. They come in tens.
func digit(r rune) rune {
	const ten = 10
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return '0' + (r-rune(t.Lo))%ten
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return '0' + (r-rune(t.Lo))%ten
		}
	}
	return r
}

// Both calls find with a text, and then with its View, and returns what both find, in order.
func Both(text string, find func(text string) []Span) []Span {
	return withView(text, find(text), find)
}

// withView is what was found in a text, and what is found in its View, in order.
func withView(text string, found []Span, find func(text string) []Span) []Span {
	quick := view{text: text}
	if !quick.make() || len(find(string(quick.out))) == 0 {
		return found
	}
	v, _ := Plain(text)
	for _, at := range find(v.Text) {
		found = append(found, v.Span(at.Start, at.End))
	}
	return slices.Compact(joined(slices.Clip(found)))
}
