package files_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
)

func TestSearch(t *testing.T) {
	d := newDesk(t, sandbox.Limits{FileSize: 1000})
	d.put(t, "go.mod", "module x\n")
	d.put(t, "a.go", "package a\n\nfunc One() {\r\n}\n\nfunc two() {\n}\nlast line")
	d.put(t, "deep/er/b.go", "package b\nfunc Three() {}\n")
	d.put(t, "deep/b.md", "func in prose\n")
	d.put(t, "image.png", "func\x00")
	d.put(t, "odd\nname", "func\n")
	d.put(t, "large", strings.Repeat("func\n", 1000))
	d.put(t, "long", strings.Repeat("é", 200)+"needle"+strings.Repeat("é", 200))
	left := "\n(3 files are not text or too large and were left out.)"
	d.play(t,
		step{"search_files", `{"pattern":"^func"}`, "a.go:3: func One() {\na.go:6: func two() {\ndeep/b.md:1: func in prose\ndeep/er/b.go:2: func Three() {}" + left},
		step{"search_files", `{"pattern":"^func [A-Z]","glob":"*.go"}`, "a.go:3: func One() {\ndeep/er/b.go:2: func Three() {}"},
		step{"search_files", `{"pattern":"(?i)FUNC o","glob":"a.go","context":1}`, "a.go-2- \na.go:3: func One() {\na.go-4- }"},
		step{"search_files", `{"pattern":"func","glob":"{a.go,deep/**/b.*}","context":2}`, "a.go-1- package a\na.go-2- \na.go:3: func One() {\na.go-4- }\na.go-5- \n" +
			"a.go:6: func two() {\na.go-7- }\na.go-8- last line\n--\ndeep/b.md:1: func in prose\n--\ndeep/er/b.go-1- package b\ndeep/er/b.go:2: func Three() {}"},
		step{"search_files", `{"pattern":"line$","glob":"a.go","context":5}`, "a.go-3- func One() {\na.go-4- }\na.go-5- \na.go-6- func two() {\na.go-7- }\na.go:8: last line"},
		step{
			"search_files", `{"pattern":"func","glob":"*.go","maxMatches":2}`,
			"a.go:3: func One() {\na.go:6: func two() {\n(There may be more: there are more than 2. A narrower pattern or glob finds the rest.)",
		},
		step{"search_files", `{"pattern":"needle"}`, "long:1: …" + strings.Repeat("é", 38) + "needle" + strings.Repeat("é", 110) + "…" + left},
		step{"search_files", `{"glob":"*.go"}`, "a.go\ndeep/er/b.go"},
		step{"search_files", `{"glob":"deep/*"}`, "deep/b.md"},
		step{"search_files", `{"glob":"*name"}`, `"odd\nname"`},
		step{"search_files", `{"glob":"*.rs"}`, "(No file has such a name.)"},
		step{"search_files", `{"pattern":"nothing","glob":"*.go"}`, "(Nothing was found in 2 files.)"},
		step{"search_files", `{}`, "! pattern: give a pattern, a glob or both"},
		step{"search_files", `{"pattern":"(?=x)"}`, "! pattern: error parsing regexp: invalid or unsupported Perl syntax: `(?=` (the syntax is RE2's: no look-around and no back-references)"},
		step{"search_files", `{"pattern":"(a{50}){20}b"}`, "! pattern: repeats too much; use smaller counts"},
		step{"search_files", `{"pattern":"` + strings.Repeat("a", 501) + `"}`, "! pattern: must not be longer than 500 bytes"},
		step{"search_files", `{"pattern":"a","context":6}`, "! context: must be 0 to 5"},
		step{"search_files", `{"pattern":"a","maxMatches":501}`, "! maxMatches: must be 1 to 500"},
		step{"search_files", `{"glob":"../*"}`, `! glob: must be relative to the workspace, without ".."`},
		step{"search_files", `{"glob":"{a,b"}`, "! glob: { without }"},
	)
}

func TestSearchIsBounded(t *testing.T) {
	d := newDesk(t, sandbox.Limits{})
	for i := range 20 {
		d.put(t, fmt.Sprintf("f%02d", i), strings.Repeat(strings.Repeat("x", 400)+"\n", 50))
	}
	got := d.call(t, "search_files", `{"pattern":"x","maxMatches":500}`)
	if len(got) > 65_000 || !strings.HasSuffix(got, "\n(There may be more: the answer is full. A narrower pattern or glob finds the rest.)") {
		t.Errorf("%d bytes, … %q", len(got), got[max(0, len(got)-200):])
	}
}

// A search whose time is up ends at once, in the middle of a file that takes long.
func TestSearchEndsWithItsContext(t *testing.T) {
	d := newDesk(t, sandbox.Limits{})
	for i := range 8 {
		d.put(t, fmt.Sprintf("f%d", i), strings.Repeat(strings.Repeat("a", 1<<12)+"\n", 240))
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("the time is up"))
	defer cancel()
	began := time.Now()
	_, err := d.set.Call(ctx, "search_files", tools.Call{Arguments: []byte(`{"pattern":"(?:a?){400}b"}`), Workspace: d.ws})
	if took := time.Since(began); err == nil || took > 10*time.Second {
		t.Errorf("%v after %v", err, took)
	}
	t.Logf("it ended after %v", time.Since(began))
}

func FuzzSearch(f *testing.F) {
	for _, s := range [][2]string{
		{"a", "*"}, {"(a|b)+$", "**/x"}, {`\pL{2,}`, "{a,b}{c,{d,e}}"}, {"(?i)É", "a**b"}, {"[", "{"}, {"(a{1000})", "}"}, {`\C`, "?,/"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, glob string) {
		d := newDesk(t, sandbox.Limits{})
		d.put(t, "d/a.txt", "one\nzwei é\n\n")
		args := fmt.Sprintf(`{"pattern":%s,"glob":%s,"context":1}`, quoted(t, pattern), quoted(t, glob))
		if got := d.call(t, "search_files", args); len(got) > 65_000 {
			t.Errorf("%d bytes", len(got))
		}
	})
}
