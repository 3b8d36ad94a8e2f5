// Package wire is what providers that speak HTTP share.
package wire

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/longshore-run/longshore/messages"
)

// Sizes of what an error shows, in bytes.
const (
	MaxDetail    = 500
	MaxRequestID = 128
	minKeyPart   = 8 // of a key's beginning that counts as a leak
)

// Other people's keys in what a gateway echoes.
var foreignKey = regexp.MustCompile(`(?i)\bbearer\s+[^\s"',;]+|\bsk-[a-z0-9_-]{8,}`)

// Redactor makes text of a server fit to be shown: without the key of the endpoint, other keys and control characters.
type Redactor struct{ Key string }

// Clean is Clip to MaxDetail.
func (r Redactor) Clean(s string) string { return r.Clip(s, MaxDetail) }

// Clip removes keys, whole and in part, and control characters, then shortens to about n bytes.
func (r Redactor) Clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	if r.Key != "" {
		s = strings.ReplaceAll(s, r.Key, "[key]")
		for part := len(r.Key) - 1; part >= minKeyPart; part-- {
			s = strings.ReplaceAll(s, r.Key[:part], "[key]")
		}
	}
	s = foreignKey.ReplaceAllString(s, "[key]")
	s = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, s)
	return messages.Clip(strings.TrimSpace(s), n)
}
