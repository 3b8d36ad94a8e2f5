package sensitive

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// However a text is cut into pieces, a Stream tells what Redact tells of the whole.
func TestStreamIsRedact(t *testing.T) {
	parts := []string{
		"a@b.co", "bob", "@", ".", "-", "+", " ", "4111111111111111", "4", "12", "345-", "6789", "555 ", "DE89", "3704", " 0044 0532 0130 00", "sk-", "abcdefghij1234567890", "ghp_",
		"AKIA", "IOSFODNN7EXAMPLE", "_", "é", "\n", "{", "\"", "(", ")", "hf_", "xoxb-1234567890", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----BEGIN PGP PRIVATE KEY BLOCK-----", "-----END PGP PRIVATE KEY BLOCK-----", " BLOCK", "-----", "-----END ", "eyJabcdefgh", ", and so on",
		`\`, `\n`, `\\n`, `\u0040`, `\u00`, `\u007b`, `\u002e`, "\u200b", "４１１１", "\u00a0", "\u2011", "＠", "٤",
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		var b strings.Builder
		for range 1 + r.IntN(10) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		whole := b.String()
		var s Stream
		var told strings.Builder
		for rest := whole; rest != ""; {
			n := 1 + r.IntN(min(len(rest), 9))
			told.WriteString(s.Add(rest[:n]))
			rest = rest[n:]
		}
		told.WriteString(s.Rest())
		if out, want := told.String(), Redact(whole); out != want {
			t.Fatalf("%q in pieces is %q, want %q", whole, out, want)
		}
	}
}

func TestStreamLetsWordsGo(t *testing.T) {
	var s Stream
	for _, p := range []struct{ piece, told string }{
		{"The files ", "The files "}, {"are wri", "are "}, {"tten. Ask a@", "written. Ask "}, {"b.co, or", "[redacted], "}, {" call", "or "},
	} {
		if got := s.Add(p.piece); got != p.told {
			t.Errorf("after %q it tells %q, want %q", p.piece, got, p.told)
		}
	}
	if got := s.Rest(); got != "call" {
		t.Errorf("at the end it tells %q", got)
	}
}

func TestStreamIsBounded(t *testing.T) {
	var s Stream
	var told strings.Builder
	told.WriteString(s.Add("begin "))
	for range 100 {
		told.WriteString(s.Add(strings.Repeat("x", 1000)))
		if len(s.held) > maxHeld {
			t.Fatalf("it holds %d bytes", len(s.held))
		}
	}
	told.WriteString(s.Add(" end") + s.Rest())
	if told.String() != "begin "+Mark {
		t.Errorf("it tells %q", told.String())
	}
}
