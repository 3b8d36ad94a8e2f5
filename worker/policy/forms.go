package policy

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
)

// forms are the ways in which a secret may be written, itself first.
func forms(secret string) []string {
	all := []string{secret, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret)))}
	all = append(all, numbers(secret, " "), numbers(secret, ","), numbers(secret, ", "))
	all = append(all, escapes(secret)...)
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		all = append(all, encodings(e, secret)...)
	}
	return all
}

// numbers are the bytes of the secret as Go and JSON print lists of them.
func numbers(secret, separator string) string {
	all := make([]string, len(secret))
	for i := range len(secret) {
		all[i] = strconv.Itoa(int(secret[i]))
	}
	return strings.Join(all, separator)
}

// escapes are the secret inside quotes and URLs. A secret in JSON that stands in JSON is escaped twice: so are the
// arguments of a tool call.
func escapes(secret string) []string {
	var all []string
	for _, html := range []bool{false, true} {
		once := inJSON(secret, html)
		all = append(all, once, inJSON(once, html))
	}
	all = append(all, unquoted(strconv.Quote(secret)), unquoted(strconv.QuoteToASCII(secret)))
	user := strings.TrimPrefix(url.UserPassword("", secret).String(), ":")
	for _, e := range []string{url.QueryEscape(secret), url.PathEscape(secret), user} {
		all = append(all, e, lowerHex(e))
	}
	return append(all, spelt(secret)...)
}

// spelt are the secret with each of its bytes escaped for a URL, and each of its characters for JSON, once and twice.
func spelt(secret string) []string {
	var upper, lower strings.Builder
	for i := range len(secret) {
		fmt.Fprintf(&upper, "%%%02X", secret[i])
		fmt.Fprintf(&lower, "%%%02x", secret[i])
	}
	all := []string{upper.String(), lower.String()}
	for _, format := range []string{`\u%04x`, `\u%04X`, `\\u%04x`, `\\u%04X`} {
		var b strings.Builder
		for _, unit := range utf16.Encode([]rune(secret)) {
			fmt.Fprintf(&b, format, unit)
		}
		all = append(all, b.String())
	}
	return all
}

// inJSON is a secret between the quotes of a JSON string, which some encoders make safe for HTML.
func inJSON(secret string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(secret); err != nil {
		return secret // a string always encodes
	}
	return unquoted(strings.TrimSuffix(b.String(), "\n"))
}

func unquoted(s string) string { return s[1 : len(s)-1] }

// lowerHex is a text of a URL with %2f for %2F.
func lowerHex(escaped string) string {
	b := []byte(escaped)
	for i, c := range b {
		if c == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// encodings are the secret in base64: alone, and the characters that are the secret's whatever stands around it, for
// each of the three places where a secret may begin in a group of three bytes.
func encodings(e *base64.Encoding, secret string) []string {
	const bits, char = 8, 6 // of a byte, of a character
	all := []string{e.EncodeToString([]byte(secret))}
	for before := range 3 {
		whole := e.EncodeToString(append(make([]byte, before), secret...))
		first := (before*bits + char - 1) / char
		last := (before + len(secret)) * bits / char
		all = append(all, whole[first:last])
	}
	return all
}
