package policy

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// detector finds one category of text. Patterns find candidates, and keep judges each.
type detector struct {
	pattern *regexp.Regexp
	keep    func(found string) bool // nil: all
	number  bool                    // no digit may stand beside it: it would be another number
}

// detectors are those of the categories of content rules. What they find looks like it: a number may have a valid check digit by
// chance (one in ten of a card's length), and a name that is no e-mail address may look like one.
//
//nolint:gochecknoglobals // a constant
var detectors = sync.OnceValue(func() map[string]detector {
	return map[string]detector{
		"email": {pattern: regexp.MustCompile(`[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24}`)},
		"phone": {regexp.MustCompile(`\+[0-9][0-9 ().-]{6,20}[0-9]|\(?[2-9][0-9]{2}\)?[ .-][0-9]{3}[ .-][0-9]{4}`), isPhone, true},
		"card":  {regexp.MustCompile(`[0-9](?:[ -]?[0-9]){12,18}`), isCard, true},
		"iban":  {regexp.MustCompile(`\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}\b`), isIBAN, false},
		"ssn":   {regexp.MustCompile(`[0-9]{3}-[0-9]{2}-[0-9]{4}`), isSSN, true},
		"key": {pattern: regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)` +
			`|\b(?:sk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}\b|\bgh[opsur]_[A-Za-z0-9]{20,}\b|\bgithub_pat_[A-Za-z0-9_]{20,}\b` +
			`|\bglpat-[A-Za-z0-9_-]{16,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[A-Za-z0-9_-]{35}` +
			`|\bhf_[A-Za-z0-9]{20,}\b|\bnpm_[A-Za-z0-9]{30,}\b|\blsk_[A-Za-z0-9_]{16,}` +
			`|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`)},
	}
})

// find returns the places in s that the detector keeps, in order.
func (d detector) find(s string) (found []span) {
	for _, at := range d.pattern.FindAllStringIndex(s, -1) {
		beside := d.number && (at[0] > 0 && isDigit(s[at[0]-1]) || at[1] < len(s) && isDigit(s[at[1]]))
		if !beside && (d.keep == nil || d.keep(s[at[0]:at[1]])) {
			found = join(found, span{at[0], at[1]})
		}
	}
	return found
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

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
