package sensitive

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A category looks into stretches of its bytes alone. It finds what its pattern finds in the whole text.
func TestStretchesHideNothing(t *testing.T) {
	parts := []string{
		"a@b.co", "bob", "@", ".", "-", "+", " ", "4111111111111111", "4", "12", "345-", "6789", "555 ", "DE89", "3704", "0044 0532 0130 00", "sk-", "abcdefghij1234567890", "ghp_",
		"AKIA", "IOSFODNN7EXAMPLE", "_", "é", "\n", "{", "\"", "(", ")", "hf_", "xoxb-1234567890", "\xff", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "eyJabcdefgh", `\"`, "\u2012",
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var b strings.Builder
		for range 1 + r.IntN(8) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		s := b.String()
		could, plain := look(s)
		if _, differs := Plain(s); differs && plain {
			t.Fatalf("look passes over what the View of %q shows", s)
		}
		for i := range categories() {
			c := &categories()[i]
			want := joined(c.plainly(s))
			if got := joined(c.find(s, nil)); !slices.Equal(got, want) {
				t.Fatalf("%s in %q: %v, want %v", c.name, s, got, want)
			}
			if len(want) > 0 && could&(1<<i) == 0 {
				t.Fatalf("look passes over %s in %q", c.name, s)
			}
		}
	}
}

// plainly is find without stretches.
func (c *category) plainly(s string) (found []Span) {
	for _, at := range c.pattern.FindAllStringIndex(s, -1) {
		beside := c.number && (at[0] > 0 && isDigit(s[at[0]-1]) || at[1] < len(s) && isDigit(s[at[1]]))
		if !beside && (c.keep == nil || c.keep(s[at[0]:at[1]])) {
			found = append(found, Span{at[0], at[1]})
		}
	}
	if c.name == "key" {
		for _, at := range privateKey().FindAllStringIndex(s, -1) {
			found = append(found, Span{at[0], at[1]})
		}
	}
	return found
}

func ExampleRedact() {
	fmt.Println(Redact("Write to bob@example.com about the card 4111 1111 1111 1111."))
	// Output: Write to [redacted] about the card [redacted].
}
