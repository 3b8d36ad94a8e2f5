package sensitive

import (
	"strings"
	"unicode/utf8"
)

// Classes of bytes that look counts.
const (
	aDigit  = 1 << iota
	aNumber // may stand in a phone number or a card's
	aWord   // may stand in a key
	aSign   // a View may differ there
)

//nolint:gochecknoglobals // a constant
var classes = func() (all [256]byte) {
	for c := range all {
		b := byte(c)
		letter := b >= 'a' && b <= 'z' || isUpper(b)
		if isDigit(b) {
			all[c] |= aDigit
		}
		if isDigit(b) || strings.IndexByte(" ().+-", b) >= 0 {
			all[c] |= aNumber
		}
		if isDigit(b) || letter || strings.IndexByte("_-.", b) >= 0 {
			all[c] |= aWord
		}
		if b == '\\' || b >= utf8.RuneSelf {
			all[c] |= aSign
		}
	}
	return all
}()

// look returns the categories that a text may hold, as bits in the order of categories, and whether its View is the text itself. Most
// texts hold none, which one pass over their bytes tells.
func look(text string) (could uint, plain bool) {
	const card, email, iban, key, phone, ssn = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5
	const digitsOfPhone, digitsOfSSN, digitsOfCard, lengthOfKey = 8, 9, 13, 15
	figures, word := 0, 0
	var seen uint8
	for i := range len(text) {
		class := classes[text[i]]
		seen |= class
		if class == aWord { // a letter, as most are
			if word++; word == lengthOfKey {
				could |= key
			}
			figures = 0
			continue
		}
		if class&aWord != 0 {
			if word++; word == lengthOfKey {
				could |= key
			}
		} else {
			word = 0
			if text[i] == '@' {
				could |= email
			}
		}
		switch {
		case class&aDigit != 0:
			switch figures++; figures {
			case digitsOfPhone:
				could |= phone
			case digitsOfSSN:
				could |= ssn
			case digitsOfCard:
				could |= card
			}
			if could&iban == 0 && i > 2 && isDigit(text[i-1]) && isUpper(text[i-2]) && isUpper(text[i-3]) {
				could |= iban
			}
		case class&aNumber == 0:
			figures = 0
		}
	}
	if could&key == 0 && strings.Contains(text, beginKey) {
		could |= key
	}
	return could, seen&aSign == 0
}
