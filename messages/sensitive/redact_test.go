package sensitive_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages/sensitive"
)

func TestRedact(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "An ordinary sentence of 2026-11-23, run 01KB3F7ZQ8W9.", "An ordinary sentence of 2026-11-23, run 01KB3F7ZQ8W9."},
		{"e-mail address", "ask bob.jones+x@mail.example.com, or bob", "ask [redacted], or bob"},
		{"address at the end", "mail a@b.co", "mail [redacted]"},
		{"two in one stretch", "a@b.com@c.org", "[redacted]@c.org"},
		{"no address", "user@localhost and @home", "user@localhost and @home"},
		{"international number", "call +49 (30) 901820-0 now", "call [redacted] now"},
		{"North American number", "call (415) 555-2671.", "call [redacted]."},
		{"card", "paid with 4111 1111 1111 1111!", "paid with [redacted]!"},
		{"not a card", "order 4111 1111 1111 1112!", "order 4111 1111 1111 1112!"},
		{"part of a number", "941111111111111111110000", "941111111111111111110000"},
		{"IBAN", "to DE89 3704 0044 0532 0130 00 today", "to [redacted] today"},
		{"IBAN of letters", "MT84MALT011000012345MTLCAST001S", "[redacted]"},
		{"social security number", "ssn 123-45-6789", "ssn [redacted]"},
		{"key", "Bearer sk-proj-abcdefghij1234567890", "Bearer [redacted]"},
		{"key in a word", "task-abcdefghij1234567890", "task-abcdefghij1234567890"},
		{"token", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "[redacted]"},
		{"private key", "x\n-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----\ny", "x\n[redacted]\ny"},
		{"PGP private key", "x\n-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQVY\n-----END PGP PRIVATE KEY BLOCK-----\ny", "x\n[redacted]\ny"},
		{"private key that is cut", "x -----BEGIN PRIVATE KEY-----\nMIIB", "x [redacted]"},
		{"several", "a@b.co 123-45-6789 a@b.co", "[redacted] [redacted] [redacted]"},
		{"key after an escape", `{"log":"a\nghp_` + token + `"}`, `{"log":"a\n[redacted]"}`},
		{"key after an escape in an escape", `"{\"log\":\"a\\nghp_` + token + `\"}"`, `"{\"log\":\"a\\n[redacted]\"}"`},
		{"escaped at sign", `{"to":"ann\u0040example.com"}`, `{"to":"[redacted]"}`},
		{"full-width digits", "card ４１１１１１１１１１１１１１１１!", "card [redacted]!"},
		{"Arabic digits", "ssn ١٢٣-٤٥-٦٧٨٩", "ssn [redacted]"},
		{"full-width at sign", "to ann＠example。com", "to [redacted]"},
		{"zero-width spaces", "card 4\u200b1\u200b1\u200b1\u200b111111111111!", "card [redacted]!"},
		{"soft hyphens", "to an\u00adn@exam\u00adple.com", "to [redacted]"},
		{"spaces that do not break", "to DE89\u00a03704\u00a00044\u202f0532\u00a00130\u00a000", "to [redacted]"},
		{"dashes", "ssn 123\u201145\u20136789", "ssn [redacted]"},
		{"letters of another script stay", "to аnn@exаmple.com", "to аnn@exаmple.com"},
		{"a path", `C:\new\u12`, `C:\new\u12`},
		{"beside other characters", "é+4930901820ü", "é[redacted]ü"},
	} {
		if got := sensitive.Redact(tc.text); got != tc.want {
			t.Errorf("%s: Redact(%q) = %q, want %q", tc.name, tc.text, got, tc.want)
		}
	}
}

const token = "A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1"

func TestRedactJSON(t *testing.T) {
	for _, tc := range []struct{ value, want string }{
		{`{"to":"a@b.co","n":1}`, `{"to":"[redacted]","n":1}`},
		{`{"card":4111111111111111}`, `{"card":"[redacted]"}`},
		{`{"to":"a\u0040b.co"}`, `{"to":"[redacted]"}`},
		{`{"a@b.co":[4111111111111111]}`, `{"[redacted]":["[redacted]"]}`},
		{`{"n": 1.50}`, `{"n": 1.50}`},
		{`{"log":"a\nghp_` + token + `"}`, `{"log":"a\n[redacted]"}`},
		{`to a@b.co`, `to [redacted]`},
		{`{"cut":"a@b.co`, `{"cut":"[redacted]`},
	} {
		if got := sensitive.RedactJSON(tc.value); got != tc.want {
			t.Errorf("RedactJSON(%s) = %s, want %s", tc.value, got, tc.want)
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{"a@b.co", "+49 30 901820 0", "4111-1111-1111-1111", "DE89370400440532013000", `{"a":4111111111111111}`, beginning} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := sensitive.Redact(s)
		if again := sensitive.Redact(out); again != sensitive.Redact(again) && len(again) > len(s)+len(sensitive.Mark)*len(s) {
			t.Fatalf("it grows: %q", again)
		}
		if json.Valid([]byte(s)) && !json.Valid([]byte(sensitive.RedactJSON(s))) {
			t.Fatalf("RedactJSON(%q) = %q is no JSON", s, sensitive.RedactJSON(s))
		}
	})
}

const beginning = "-----BEGIN PRIVATE KEY-----"

var plain = strings.Repeat("The agent wrote 12 files to build/output_directory and read config.yaml (3.4 KB) in 120 ms. ", 90)

func BenchmarkRedactNothing(b *testing.B) {
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		sensitive.Redact(plain)
	}
}

func BenchmarkRedactSome(b *testing.B) {
	text := plain + "bob@example.com" + plain
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		sensitive.Redact(text)
	}
}
