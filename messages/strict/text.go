package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxToken is the length limit of a token in bytes.
const MaxToken = 64

// ValidToken reports whether s may be a tenant, run id, session or agent name: one subject token,
// [A-Za-z0-9_-]{1,64}. Nothing else may ever reach a subject or a filter: `*` and `>` there mean other people's runs.
func ValidToken(s string) bool {
	if s == "" || len(s) > MaxToken {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// CheckToken is ValidToken as an error that names the field.
func CheckToken(field, s string) error {
	if ValidToken(s) {
		return nil
	}
	return &FieldError{Field: field, Reason: "must be 1 to 64 characters of A-Z a-z 0-9 _ -"}
}

// CheckText refuses text of more than limit bytes and text that not every consumer could store.
func CheckText(field, s string, limit int) error {
	switch {
	case len(s) > limit:
		return &FieldError{Field: field, Reason: fmt.Sprintf("larger than %d bytes", limit)}
	case !utf8.ValidString(s):
		return &FieldError{Field: field, Reason: "invalid UTF-8"}
	case strings.IndexByte(s, 0) >= 0:
		return &FieldError{Field: field, Reason: "holds a NUL character"}
	}
	return nil
}

// Shown is s as an error may show it: short, on one line and printable.
func Shown(s string) string {
	if len(s) > MaxShown {
		s = s[:cutAt(s, MaxShown)] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// Clip shortens s to n bytes, at a rune boundary, and then says by how much.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return clipped(s, cutAt(s, n))
}

func clipped(s string, cut int) string {
	return fmt.Sprintf("%s… (%d more bytes)", s[:cut], len(s)-cut)
}

// Fit is Clip to n bytes as JSON, which writes some characters as six bytes.
func Fit(s string, n int) (_ string, cut bool) {
	if len(s) <= n/len(`\u0000`) {
		return s, false
	}
	for i, r := range s {
		if n -= sizeInJSON(r); n < 0 {
			return clipped(s, i), true
		}
	}
	return s, false
}

func sizeInJSON(r rune) int {
	switch {
	case r < ' ', r == '<', r == '>', r == '&', r == utf8.RuneError, r == '\u2028', r == '\u2029', r == 0x7f:
		return len(`\u0000`)
	case r == '"', r == '\\':
		return 2
	default:
		return utf8.RuneLen(r)
	}
}

// Brief is Fit without saying whether it cut.
func Brief(s string, n int) string {
	s, _ = Fit(s, n)
	return s
}

// Larger reports whether a value is larger than limit as JSON.
func Larger(v any, limit int) bool {
	if millis, ok := v.(map[string]int64); ok {
		most := 0
		for name := range millis {
			most += 6*len(name) + 24 // a character is escaped with six
		}
		if most <= limit {
			return false
		}
	}
	b, err := json.Marshal(v)
	return err != nil || len(b) > limit
}

// cutAt is the last rune boundary of s up to n, which is less than its length.
func cutAt(s string, n int) int {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// Canonical is free JSON with its keys sorted and without spacing; what is not JSON stays as it is.
func Canonical(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	var v any
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber() // large numbers that differ must not become the same
	if in.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}
