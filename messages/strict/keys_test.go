package strict_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages/strict"
)

// TestKeys gives a key twice in objects of few and many keys, at any place, and written in another way.
func TestKeys(t *testing.T) {
	for _, n := range []int{1, 2, 23, 24, 25, 26, 100} {
		members := make([]string, n)
		for i := range members {
			members[i] = fmt.Sprintf(`"k%d":{"a":%d,"b":[{"a":1},{"a":2}]}`, i, i)
		}
		body := "{" + strings.Join(members, ",") + "}"
		given := body
		var v map[string]any
		if err := strict.Decode([]byte(body), &v); err != nil || len(v) != n {
			t.Errorf("%d keys: %d were read: %v", n, len(v), err)
		}
		if body != given {
			t.Errorf("%d keys: the input was changed", n)
		}
		for i := range n {
			for _, key := range []string{fmt.Sprintf("k%d", i), fmt.Sprintf(`\u006b%d`, i)} {
				twice := fmt.Sprintf(`{%s,"%s":1}`, strings.Join(members, ","), key)
				want := fmt.Sprintf("k%d: given twice", i)
				if err := strict.Decode([]byte(twice), &v); err == nil || err.Error() != want {
					t.Errorf("%d keys, the last is %s again: %v, want %s", n, key, err, want)
				}
			}
		}
	}
}

// TestText reads strings with and without escapes, and leaves the input as it is.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		`""`:                          "",
		`"plain"`:                     "plain",
		`"ünïcode 🙂"`:                 "ünïcode 🙂",
		`"a\nb\tc\"d\\e\/f"`:          "a\nb\tc\"d\\e/f",
		`"\u00fc\ud83d\ude42 and on"`: "ü🙂 and on",
		`"\n"`:                        "\n",
	} {
		body := []byte(`[` + in + `,"after"]`)
		var v []string
		if err := strict.Decode(body, &v); err != nil || len(v) != 2 || v[0] != want || v[1] != "after" {
			t.Errorf("%s: read as %q: %v", in, v, err)
		}
		if string(body) != `[`+in+`,"after"]` {
			t.Errorf("%s: the input was changed to %s", in, body)
		}
	}
	for _, in := range []string{"\"a\x00\"", "\"a\n\"", `"a`, `"a\`, `"\x"`, `"\ud83d"`, "\"\xff\"", "\"a\\n\xff\""} {
		var v string
		if err := strict.Decode([]byte(in), &v); err == nil {
			t.Errorf("%q: read as %q", in, v)
		}
	}
}

// TestNumbers refuses what looks like a number and is none.
func TestNumbers(t *testing.T) {
	for in, ok := range map[string]bool{
		"0": true, "7": true, "10": true, "-1": true, "1e3": true, "1.5": true, "-0": true,
		"01": false, "00": false, "1.": false, ".5": false, "+1": false, "-": false, "1e": false, "--1": false, "1-2": false,
	} {
		var v float64
		if err := strict.Decode([]byte(in), &v); (err == nil) != ok {
			t.Errorf("%s: %v, want an error: %t", in, err, !ok)
		}
	}
}
