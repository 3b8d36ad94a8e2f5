package document_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages/document"
)

func TestAllReadsEachDocument(t *testing.T) {
	t.Parallel()
	all, err := document.All([]byte("# first\na: &x 1\nb: *x\n---\n---\n# nothing\n---\n\n- 2\n...\n---\n"), limit)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d documents, %v", len(all), err)
	}
	for i, want := range []string{`2 {"a":1,"b":1}`, `9 [2]`} {
		if got := fmt.Sprintf("%d %s", all[i].Line, all[i].JSON); got != want {
			t.Errorf("document %d: got %s, want %s", i, got, want)
		}
	}
}

func TestOnlyRefuses(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [" + strings.Repeat("x, ", 10) + "]\n")
	for i := range 8 {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	for name, tc := range map[string]struct{ file, want string }{
		"a second document": {"a: 1\n---\n\nb: 2\n", "a second YAML document begins on line 4: give one document in each file"},
		"a wrong second":    {"a: 1\n---\nb: [\n", "read YAML: "},
		"nothing":           {"", document.ErrEmpty.Error()},
		"only a comment":    {"# later\n---\n", document.ErrEmpty.Error()},
		"a number as key":   {"1: 2", "read YAML: a key is not a string"},
		"infinity":          {"a: .inf", "read YAML: a key is not a string, or a number is not finite"},
		"a key twice":       {"a: 1\na: 2\n", "read YAML: "},
		"many aliases":      {bomb.String(), "read YAML: "},
		"large aliases":     {"a: &a " + strings.Repeat("x", limit/3) + "\nb: [*a, *a, *a]", "larger than 1024 bytes once its aliases are resolved"},
	} {
		_, err := document.Only([]byte(tc.file), limit)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
	if _, err := document.Only(nil, limit); !errors.Is(err, document.ErrEmpty) {
		t.Errorf("nothing: %v", err)
	}
}

func FuzzAll(f *testing.F) {
	f.Add([]byte("a: 1\n---\nb: [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := document.All(data, limit)
		if (err == nil) != (len(all) > 0) {
			t.Errorf("%d documents, %v", len(all), err)
		}
	})
}
