package policy_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/worker/policy"
)

const (
	key      = "sk-proj-0123456789abcdef"
	password = `p"ss\w/rd <&> é+%?`
	pem      = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ==\n-----END KEY-----"
)

func TestRedactor(t *testing.T) {
	cases := map[string]struct {
		secrets  []string
		in, want string
	}{
		"nothing to hide":        {[]string{key}, "all is well", "all is well"},
		"empty text":             {[]string{key}, "", ""},
		"no secrets":             {nil, key, key},
		"the whole text":         {[]string{key}, key, "[redacted]"},
		"in the middle":          {[]string{key}, "Bearer " + key + ".", "Bearer [redacted]."},
		"twice":                  {[]string{key}, key + " " + key, "[redacted] [redacted]"},
		"side by side":           {[]string{key}, key + key, "[redacted][redacted]"},
		"six bytes":              {[]string{"abcdef"}, "xabcdefx", "x[redacted]x"},
		"five bytes are ignored": {[]string{"abcde"}, "abcde", "abcde"},
		"empty is ignored":       {[]string{"", key}, "a", "a"},
		"only spaces is ignored": {[]string{"          "}, "          ", "          "},
		"spaces around a secret": {[]string{" " + key + "\n"}, "<" + key + ">", "<[redacted]>"},
		"one inside the other":   {[]string{"secret", "secret-longer"}, "secret-longer secret", "[redacted] [redacted]"},
		"one begins in another":  {[]string{"abcdefgh", "ghijklmn"}, "-abcdefghijklmn-", "-[redacted]-"},
		"one begins in itself":   {[]string{"ababab"}, "-abababab-", "-[redacted]-"},
		"a part of the mark":     {[]string{"redact"}, "redact", "[redacted]"},
		"a mark makes a secret":  {[]string{key, "]-token"}, key + "-token", "[redacted]"},
		"in other case it is another one": {
			[]string{key}, strings.ToUpper(key), strings.ToUpper(key),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, policy.NewRedactor(c.secrets...).String(c.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRedactorWithoutSecrets(t *testing.T) {
	var none *policy.Redactor
	if got := none.String(key); got != key {
		t.Errorf("nil: %q", got)
	}
	if got := new(policy.Redactor).String(key); got != key {
		t.Errorf("zero: %q", got)
	}
}

func TestRedactorKnowsEncodings(t *testing.T) {
	encodings := map[string]func(s string) string{
		"base64":            func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 for URLs":   func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
		"base64 unpadded":   func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
		"hex":               func(s string) string { return hex.EncodeToString([]byte(s)) },
		"hex in upper case": func(s string) string { return fmt.Sprintf("%X", s) },
		"JSON":              inJSON,
		"JSON without HTML": inPlainJSON,
		"JSON in JSON":      func(s string) string { return inJSON(inJSON(s)) },
		"quoted":            func(s string) string { return trimQuotes(fmt.Sprintf("%q", s)) },
		"quoted as ASCII":   func(s string) string { return trimQuotes(fmt.Sprintf("%+q", s)) },
		"query":             url.QueryEscape,
		"path":              url.PathEscape,
		"user":              func(s string) string { return strings.TrimPrefix(url.UserPassword("", s).String(), ":") },
		"query in lower hex": func(s string) string {
			return strings.ReplaceAll(strings.ToLower(url.QueryEscape(s)), "begin", "BEGIN")
		},
	}
	for name, encode := range encodings {
		for _, secret := range []string{key, password, pem} {
			if name == "query in lower hex" && secret == pem {
				continue // its letters have two cases, which the encoding here would change
			}
			t.Run(name, func(t *testing.T) {
				in := "before " + encode(secret) + " after"
				got := policy.NewRedactor(secret).String(in)
				got = strings.ReplaceAll(got, "=", "") // padding may be left
				if diff := cmp.Diff("before [redacted] after", got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestRedactorKnowsBase64OfMore(t *testing.T) {
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		for before := range 6 {
			for after := range 4 {
				for _, secret := range []string{key, password, "abcdef", "abcdefg", "abcdefgh"} {
					whole := strings.Repeat("u", before) + secret + strings.Repeat("?", after)
					got := policy.NewRedactor(secret).String(e.EncodeToString([]byte(whole)))
					if !strings.Contains(got, policy.Mark) {
						t.Fatalf("%d bytes, %q, %d bytes: %q", before, secret, after, got)
					}
					// What is left tells at most a character of the secret on either side.
					rest := len(strings.TrimRight(strings.ReplaceAll(got, policy.Mark, ""), "="))
					if limit := (before*8+5)/6 + (after*8+5)/6 + 1; rest > limit {
						t.Fatalf("%d bytes, %q, %d bytes: %q leaves %d of %d", before, secret, after, got, rest, limit)
					}
				}
			}
		}
	}
}

func inJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return trimQuotes(string(b))
}

func inPlainJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err)
	}
	return trimQuotes(strings.TrimSpace(b.String()))
}

func trimQuotes(s string) string { return s[1 : len(s)-1] }

func FuzzRedact(f *testing.F) {
	f.Add(key, password, "a", "b", uint8(3))
	f.Add("abcdefgh", "ghijklmn", "abcdefghij", "klmn", uint8(1))
	f.Add("aaaaaa", "aaaaaaa", "aaaaaaaaaaaaaaa", "aa", uint8(2))
	f.Add("]]]]]a", "redact", "]]]]a", "[", uint8(1))
	f.Add("pass\xffword", "\x00\x01\x02\x03\x04\x05", "pass\xff", "word", uint8(2))
	f.Fuzz(func(t *testing.T, one, two, before, after string, size uint8) {
		secrets := []string{strings.TrimSpace(one), strings.TrimSpace(two)}
		r := policy.NewRedactor(one, two)
		text := before + one + after + inJSON(two) + before + url.QueryEscape(one) + two
		got := r.String(text)
		for _, s := range secrets {
			if len(s) < policy.MinSecret || strings.Contains(policy.Mark, s) {
				continue
			}
			for _, form := range []string{s, inJSON(s), inPlainJSON(s), url.QueryEscape(s), base64.StdEncoding.EncodeToString([]byte(s))} {
				if strings.Contains(got, form) {
					t.Fatalf("%q is in %q", form, got)
				}
			}
		}
		streamed := stream(t, r, text, int(size)+1)
		if got == policy.Mark && streamed != got {
			return // what a stream passed on cannot be taken back when a mark makes a secret
		}
		if diff := cmp.Diff(got, streamed); diff != "" {
			t.Error(diff)
		}
	})
}

func BenchmarkRedactor(b *testing.B) {
	r := policy.NewRedactor(key, password, pem, "postgres://user:secret@host/db", "nats-token-123456", "another-api-key")
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 200)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if r.String(text) != text {
			b.Fatal("changed")
		}
	}
}
