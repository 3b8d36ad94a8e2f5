package sensitive

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// category is one kind of what is found. Its pattern matches within a stretch of bytes of its class, and keep judges each match.
type category struct {
	name     string
	pattern  *regexp.Regexp
	class    [256]bool
	shortest int                       // of a match, in bytes
	may      func(stretch string) bool // false: no match is in it, so the pattern need not look
	keep     func(found string) bool   // nil: all
	number   bool                      // no digit may stand beside it: it would be another number
}

// categories are in the order of their names. What they find looks like it: a number may have a valid check digit by chance (one in
// ten of a card's length), and a name that is no e-mail address may look like one.
//
//nolint:gochecknoglobals // a constant
var categories = sync.OnceValue(func() []category {
	const figures, letters = "0123456789", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	numbers := classOf(figures + " ().+-")
	return []category{
		{name: "card", pattern: regexp.MustCompile(`[0-9](?:[ -]?[0-9]){12,18}`), class: numbers, shortest: 13, may: hasDigits(13), keep: isCard, number: true},
		{
			name: "email", pattern: regexp.MustCompile(`[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24}`),
			class: classOf(figures + letters + "._%+-@"), shortest: 6, may: func(s string) bool { return strings.IndexByte(s, '@') >= 0 },
		},
		{
			name: "iban", pattern: regexp.MustCompile(`\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}\b`),
			class: classOf(figures + letters[26:] + " "), shortest: 15, may: hasCountry, keep: isIBAN,
		},
		{
			name: "key", pattern: regexp.MustCompile(`\b(?:sk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}\b|\bgh[opsur]_[A-Za-z0-9]{20,}\b` +
				`|\bgithub_pat_[A-Za-z0-9_]{20,}\b|\bglpat-[A-Za-z0-9_-]{16,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b` +
				`|\bAIza[A-Za-z0-9_-]{35}|\bhf_[A-Za-z0-9]{20,}\b|\bnpm_[A-Za-z0-9]{30,}\b|\blsk_[A-Za-z0-9_]{16,}` +
				`|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`),
			class: classOf(figures + letters + "_-."), shortest: 15, may: hasKeyPrefix,
		},
		{
			name: "phone", pattern: regexp.MustCompile(`\+[0-9][0-9 ().-]{6,20}[0-9]|\(?[2-9][0-9]{2}\)?[ .-][0-9]{3}[ .-][0-9]{4}`),
			class: numbers, shortest: 9, may: hasDigits(8), keep: isPhone, number: true,
		},
		{name: "ssn", pattern: regexp.MustCompile(`[0-9]{3}-[0-9]{2}-[0-9]{4}`), class: numbers, shortest: 11, may: hasDigits(9), keep: isSSN, number: true},
	}
})

// privateKey is a key that goes over lines. One without an end continues to the end of the text.
//
//nolint:gochecknoglobals // a constant
var privateKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(beginKey + `[A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|$)`)
})

const beginKey = "-----BEGIN "

func classOf(all string) (class [256]bool) {
	for i := range len(all) {
		class[all[i]] = true
	}
	return class
}

// find appends the places in s that the category keeps, in order.
func (c *category) find(s string, found []Span) []Span {
	if c.name == "key" && strings.Contains(s, beginKey) {
		for _, at := range privateKey().FindAllStringIndex(s, -1) {
			found = append(found, Span{at[0], at[1]})
		}
	}
	for from := 0; from+c.shortest <= len(s); {
		// Backwards: most places are passed over by looking at one byte of every few.
		at := from + c.shortest - 1
		for at >= from && c.class[s[at]] {
			at--
		}
		if at >= from {
			from = at + 1
			continue
		}
		to := from + c.shortest
		for to < len(s) && c.class[s[to]] {
			to++
		}
		if c.may(s[from:to]) {
			found = c.within(s, from, to, found)
		}
		from = to
	}
	return found
}

// within appends the places in a stretch. The pattern sees a byte more on each side, so that it knows where words end.
func (c *category) within(s string, from, to int, found []Span) []Span {
	left, right := max(from-1, 0), min(to+1, len(s))
	for _, at := range c.pattern.FindAllStringIndex(s[left:right], -1) {
		start, end := at[0]+left, at[1]+left
		beside := c.number && (start > 0 && isDigit(s[start-1]) || end < len(s) && isDigit(s[end]))
		if !beside && (c.keep == nil || c.keep(s[start:end])) {
			found = append(found, Span{start, end})
		}
	}
	return found
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isUpper(b byte) bool { return b >= 'A' && b <= 'Z' }

// hasDigits reports whether a stretch has so many digits.
func hasDigits(enough int) func(string) bool {
	return func(s string) bool {
		n := 0
		for i := range len(s) {
			if isDigit(s[i]) {
				n++
			}
		}
		return n >= enough
	}
}

// hasCountry reports whether a stretch has what an IBAN begins with.
func hasCountry(s string) bool {
	for i := 3; i < len(s); i++ {
		if isDigit(s[i]) && isDigit(s[i-1]) && isUpper(s[i-2]) && isUpper(s[i-3]) {
			return true
		}
	}
	return false
}

// hasKeyPrefix reports whether a word in a stretch begins as a key does.
func hasKeyPrefix(s string) bool {
	for i := range len(s) {
		if i > 0 && s[i-1] != '-' && s[i-1] != '.' || strings.IndexByte("srgxAhnle", s[i]) < 0 {
			continue
		}
		for _, prefix := range [...]string{
			"sk-", "sk_", "rk-", "rk_", "gh", "github_pat_", "glpat-", "xox", "AKIA", "ASIA", "AIza", "hf_", "npm_", "lsk_", "eyJ",
		} {
			if strings.HasPrefix(s[i:], prefix) {
				return true
			}
		}
	}
	return false
}

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}

// isPhone takes 8 to 15 digits, as E.164 has them at most.
func isPhone(s string) bool {
	n := len(digits(s))
	return n >= 8 && n <= 15
}

// isCard checks the digit of Luhn (ISO/IEC 7812-1). Zeros alone pass it and are no card.
func isCard(s string) bool {
	sum, d := 0, digits(s)
	for i := range len(d) {
		n := int(d[len(d)-1-i] - '0')
		if i%2 == 1 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0 && strings.Trim(d, "0") != ""
}

// isIBAN checks the remainder by 97 (ISO 13616).
func isIBAN(s string) bool {
	s = strings.ReplaceAll(s, " ", "")
	if len(s) < 15 || len(s) > 34 {
		return false
	}
	var number strings.Builder
	for _, r := range s[4:] + s[:4] {
		if r >= 'A' {
			number.WriteString(strconv.Itoa(int(r-'A') + 10))
			continue
		}
		number.WriteRune(r)
	}
	n, ok := new(big.Int).SetString(number.String(), 10)
	return ok && new(big.Int).Mod(n, big.NewInt(97)).Int64() == 1
}

// isSSN leaves out numbers that the Social Security Administration does not give.
func isSSN(s string) bool {
	return s[:3] != "000" && s[:3] != "666" && s[0] != '9' && s[4:6] != "00" && s[7:] != "0000"
}
