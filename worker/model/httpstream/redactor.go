package httpstream

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/longshore-run/longshore/messages/strict"
)

// Sizes of what an error shows, in bytes.
const (
	MaxDetail    = 500 // of what a provider said
	maxRequestID = 128
	minKeyPart   = 8 // of a key's beginning that counts as a leak
)

// Other people's keys in what a gateway echoes.
var foreignKey = regexp.MustCompile(`(?i)\bbearer\s+[^\s"',;]+|\bsk-[a-z0-9_-]{8,}`)

// redactor makes text of a server fit to be shown: without the key of the endpoint, other keys and control characters.
type redactor struct{ key string }

// clip removes keys, whole and in part, and control characters, then shortens to about n bytes.
func (r redactor) clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	if r.key != "" {
		s = strings.ReplaceAll(s, r.key, "[key]")
		for part := len(r.key) - 1; part >= minKeyPart; part-- {
			s = strings.ReplaceAll(s, r.key[:part], "[key]")
		}
	}
	s = foreignKey.ReplaceAllString(s, "[key]")
	s = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, s)
	return strict.Clip(strings.TrimSpace(s), n)
}
